import type { ServerResponse } from 'node:http'
import type { Failure } from './answers/failures.js'

declare module 'fastify' {
  /** Fields that files of http/ read. access/guard.ts sets `userId`. */
  interface FastifyRequest {
    /** The id of the user who has sent the request. Undefined until the session is found. */
    userId?: number
    /** The Failure of the request, if it has failed. */
    failure?: Failure
    /**
     * What the log says of a refusal, if it is known who was refused. access/refusal.ts sets it.
     */
    refusal?: object
    /**
     * How many bytes of the request's body count towards the memory for bodies (limits/bodies.ts).
     */
    bodyBytes?: number
  }
}

declare module 'node:net' {
  /** Fields of connections that files of http/ use. */
  interface Socket {
    // limits/pipelining.ts sets these two.
    /** The responses that have not been sent completely, in the order of their requests. */
    unanswered?: ServerResponse[]
    /** Resolves when it is the turn of the next request of the connection. */
    turn?: Promise<void>
    /** Node's parser. Node's types and documents do not have it. */
    parser?: { onIncoming(request: { upgrade: boolean }): number }
  }
}
