import type { ServerResponse } from 'node:http'
import type { Failure } from './answers/failures.js'

declare module 'fastify' {
  /** Fields that files of http/ read. access/guard.ts sets `userId`. */
  interface FastifyRequest {
    /** The id of the user who has sent the request. Undefined until the session is found. */
    userId?: number
    /** The Failure of the request, if it has failed. */
    failure?: Failure
    /** How many bytes of the request's body count towards the memory for bodies (limits/bodies.ts). */
    bodyBytes?: number
  }
}

declare module 'node:http' {
  interface IncomingMessage {
    /**
     * Discards the rest of the body. Node calls it for a body that nobody has read when its answer is
     * sent. Node's types and documents do not have it, and requests of Fastify's `inject` lack it.
     */
    _dump?(): void
  }
}

declare module 'node:net' {
  /** Fields of connections that files of http/ use. */
  interface Socket {
    /** The requests in line on the connection. Set by limits/pipelining.ts. */
    line?: {
      /** The responses that were not sent completely, in the order of their requests. */
      unanswered: ServerResponse[]
      /** How many bytes Node had read when it passed on the last request. */
      bytesRead: number
      /** How many requests Node has passed on since it read these bytes. */
      readTogether: number
    }
    /** Whether answers/unreadable.ts has refused the connection. */
    isRefused?: boolean
    /** Node's parser. Node's types and documents do not have it. */
    parser?: { onIncoming(request: { upgrade: boolean }): number }
  }
}
