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

/** A port behind an address, as some proxies add it: each connection would be another client. */
const PORT = /(?<=^|[\s,])(?:\[([^\]]*)\]|(\d+(?:\.\d+){3}))(?::\d+)?(?=$|[\s,])/g

/** Those headers for every answer; other origins are let in only where they are listed. */
export default fp<{ origins: string[] }>(async (app, { origins }) => {
  app.addHook('onRequest', async ({ raw: { headers } }, reply) => {
    const forwarded = headers['x-forwarded-for']
    if (forwarded) headers['x-forwarded-for'] = String(forwarded).replace(PORT, '$1$2')
    reply.headers(API_HEADERS)
  })
  if (origins.length > 0) {
    await app.register(cors, {
      origin: origins,
      credentials: true,
      methods: ['GET', 'POST', 'PUT', 'DELETE'],
      exposedHeaders: ['x-request-id', 'retry-after', 'etag'],
      strictPreflight: false,
    })
  }
})
