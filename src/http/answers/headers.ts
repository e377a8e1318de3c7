import cors from '@fastify/cors'
import type { FastifyInstance } from 'fastify'

/**
 * The headers of every answer. They keep browsers from storing the answer, from showing it as a
 * page, and from requesting it without TLS. A route may replace some of them (see docs.ts).
 */
export const API_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/**
 * Adds API_HEADERS and the request's id to every answer. Lets pages of the listed `origins` call
 * the service (CORS).
 */
export async function addHeaders(app: FastifyInstance, origins: string[]) {
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({ ...API_HEADERS, 'x-request-id': request.id })
    done()
  })
  if (origins.length > 0) {
    await app.register(cors, {
      origin: origins,
      credentials: true,
      methods: ['GET', 'POST', 'PUT', 'DELETE'],
      exposedHeaders: ['x-request-id', 'x-needs', 'retry-after', 'etag'],
      // The plugin answers an incomplete preflight request like a complete one. It would otherwise
      // answer with 400 and a text that is not JSON.
      strictPreflight: false,
      // How long a browser may store the answer to a preflight request, in seconds.
      maxAge: 600,
    })
  }
}
