// The references are JavaScript, so that no loader counts in their start and memory.
import jwt from '@fastify/jwt'
import Fastify from 'fastify'
import postgres from 'postgres'

/** An environment variable that the bench always gives. */
export const env = (/** @type {string} */ name) => process.env[name] ?? ''

/** As many connections as the service has by default. */
export const POOL_MAX = 10

export const openPool = () => postgres(env('DATABASE_URL'), { max: POOL_MAX, fetch_types: false })

/** Fastify as the service uses it, with JWT verification and without a log. */
export async function fastifyWithJwt() {
  const app = Fastify()
  await app.register(jwt, { secret: env('JWT_SECRET'), verify: { algorithms: ['HS256'] } })
  app.get('/health/live', async () => ({ status: 'ok' }))
  return app
}

/** For `onRequest`: 401 without a good token. */
export const verified = (/** @type {import('fastify').FastifyRequest} */ request) =>
  request.jwtVerify()

export const MAP_URL = '/api/permisos/mis-permisos/:idPerfil'

export const listen = (/** @type {import('fastify').FastifyInstance} */ app) =>
  app.listen({ host: '127.0.0.1', port: Number(env('PORT')) })
