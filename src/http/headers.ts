import cors from '@fastify/cors'
import fp from 'fastify-plugin'

/** What browsers may do with an answer: make nothing of it, and keep it nowhere. */
export const API_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** Those headers for every answer; other origins are let in only where they are listed. */
export default fp<{ origins: string[] }>(async (app, { origins }) => {
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers(API_HEADERS)
  })
  if (origins.length > 0) {
    await app.register(cors, {
      origin: origins,
      credentials: true,
      methods: ['GET', 'POST', 'PUT', 'DELETE'],
      exposedHeaders: ['x-request-id', 'retry-after', 'etag'],
      strictPreflight: false,
      // How long a browser may keep the answer to a preflight request, in seconds.
      maxAge: 600,
    })
  }
})
