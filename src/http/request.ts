import type { FastifyInstance } from 'fastify'
import type { Failure } from './answers/failures.js'
import type { LoggedAs } from './observation/log.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The client's address. Fastify's `ip` is undefined once the client has disconnected. */
    clientIp: string
    /** The Failure of the request; null while it has none. */
    failure: Failure | null
    /** What the request's line has instead of, and besides, the usual. Null for a usual line. */
    logAs: LoggedAs | null
    /** How many bytes of the request's body are counted. */
    bodyBytes: number
  }
}

/** Adds to each request the fields that files of http/ set. access/guard.ts adds two more. */
export function declareFields(app: FastifyInstance) {
  app.decorateRequest('clientIp', '')
  app.decorateRequest('failure', null)
  app.decorateRequest('logAs', null)
  app.decorateRequest('bodyBytes', 0)
}
