import cors from '@fastify/cors'
import helmet from '@fastify/helmet'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from './config.js'

/** For answers that no browser shows: nothing may be made of them, and no cache may keep them. */
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
 * The headers that tell browsers what may be done with an answer. Pages get helmet's, with a policy
 * that the documentation works under; other origins are let in only where they are listed.
 */
export default fp<Pick<Config, 'corsOrigin'>>(async (app, { corsOrigin }) => {
  await app.register(helmet, {
    global: false,
    contentSecurityPolicy: {
      directives: {
        'img-src': ["'self'", 'data:'],
        // A deployment without TLS in front would lose the page's own assets.
        'upgrade-insecure-requests': null,
      },
    },
  })
  app.addHook('onRequest', (request, reply, done) => {
    if (isApi(request)) reply.headers(API_HEADERS)
    else reply.helmet()
    done()
  })
  if (corsOrigin.length > 0) {
    await app.register(cors, {
      origin: corsOrigin,
      credentials: true,
      methods: ['GET', 'POST', 'PUT', 'DELETE'],
      exposedHeaders: ['x-request-id', 'retry-after', 'etag'],
      strictPreflight: false,
    })
  }
})

/**
 * Whether a request is to the API: by its route, which a path with percent signs can't hide; by its
 * path where there is none.
 */
export const isApi = ({ url, routeOptions }: FastifyRequest) =>
  url.startsWith('/api') || routeOptions.url?.startsWith('/api')
