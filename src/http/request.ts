import type { ServerResponse } from 'node:http'
import type { Failure } from './answers/failures.js'

/** The requests in line on a connection (HTTP pipelining). */
export interface Pipeline {
  /** The responses that have not been sent completely, in the order of their requests. */
  unanswered: ServerResponse[]
  /**
   * The responses to the requests that wait to be passed on. The first of these requests has been
   * passed on already: its response keeps its place until Node has gone through the other
   * connections.
   */
  waiting: ServerResponse[]
}

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
    /** Set by limits/pipelining.ts. */
    pipeline?: Pipeline
    /** Node's parser. Node's types and documents do not have it. */
    parser?: { onIncoming(request: { upgrade: boolean }): number }
  }
}
