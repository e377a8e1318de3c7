import cors from '@fastify/cors'
import helmet from '@fastify/helmet'
import fp from 'fastify-plugin'
import type { Config } from './config.js'

/**
 * The headers that tell browsers what may be done with an answer. The policy lets the
 * documentation page work; other origins are let in only where they are listed.
 */
export default fp<Pick<Config, 'corsOrigin'>>(async (app, { corsOrigin }) => {
  await app.register(helmet, {
    contentSecurityPolicy: {
      directives: {
        'img-src': ["'self'", 'data:'],
        // A deployment without TLS in front would lose the page's own assets.
        'upgrade-insecure-requests': null,
      },
    },
  })
  if (corsOrigin.length > 0) {
    await app.register(cors, {
      origin: corsOrigin,
      credentials: true,
      methods: ['GET', 'POST', 'PUT', 'DELETE'],
      exposedHeaders: ['x-request-id', 'retry-after'],
    })
  }
  app.addHook('onRequest', async (request, reply) => {
    if (request.url.startsWith('/api')) reply.header('cache-control', 'no-store')
  })
})
