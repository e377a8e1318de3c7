import { randomUUID } from 'node:crypto'
import Fastify, { type FastifyInstance, LogController } from 'fastify'
import { guardRoutes, identifyCallers } from './auth/access.js'
import { captchaVerifier, type VerifyCaptcha } from './auth/captcha.js'
import { type Passwords, startPasswords } from './auth/password.js'
import authPlugin from './auth/plugin.js'
import authRoutes from './auth/routes.js'
import type { Config } from './config.js'
import { openPool, type Pool } from './database/pool.js'
import { EXAMPLES } from './examples.js'
import docs from './http/docs.js'
import { answerFailures, Failure } from './http/failures.js'
import headers from './http/headers.js'
import healthRoutes from './http/health.js'
import { BODY_LIMIT, limitLoad, parseJsonBodies } from './http/limits.js'
import { auditWrites, type LogStream, logOptions, logRequests } from './http/log.js'
import { documentFailures } from './http/openapi.js'
import { takeTurns } from './http/turns.js'
import { answerOddRequests, refuseConnection, refusePath } from './http/unreadable.js'
import { validateRequests } from './http/validation.js'
import moduloRoutes from './modulo/routes.js'
import perfilRoutes from './perfil/routes.js'
import permisosRoutes from './permisos/routes.js'
import { type Imagenes, imageHost } from './usuario/imagen.js'
import usuarioRoutes from './usuario/routes.js'

declare module 'fastify' {
  interface FastifyInstance {
    sql: Pool
    passwords: Passwords
    verifyCaptcha: VerifyCaptcha
    imagenes: Imagenes
    /** Whether the service is about to stop: it is not ready any more. */
    isStopping: boolean
  }
}

/** The longest request header, and with it the longest id in a path. */
const MAX_HEADER = 16_384

/**
 * The whole service, not listening yet. Closing it ends the pool and the threads that it opened.
 * `logStream` takes the log lines instead of the standard output.
 */
export async function buildApp(
  config: Config,
  { logStream }: { logStream?: LogStream } = {},
): Promise<FastifyInstance> {
  const app: FastifyInstance = Fastify({
    logger: logOptions(config.LOG_LEVEL, logStream),
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    trustProxy: config.TRUST_PROXY,
    bodyLimit: BODY_LIMIT,
    routerOptions: { maxParamLength: MAX_HEADER },
    http: {
      maxHeaderSize: MAX_HEADER,
      // How long the headers of a request may take to come in, in milliseconds.
      headersTimeout: 15_000,
      // How often Node looks for connections that are late, in milliseconds.
      connectionsCheckingInterval: 1000,
      // answerOddRequests looks for it.
      requireHostHeader: false,
    },
    // How long a whole request may take to come in, in milliseconds.
    requestTimeout: 120_000,
    // What still arrives on open connections while the server closes is served to its end.
    return503OnClosing: false,
    frameworkErrors: refusePath,
    clientErrorHandler: (error, connection) => refuseConnection(app, error, connection),
  })

  const sql = openPool(config, app.log)
  const passwords = startPasswords()
  app.addHook('onClose', async () => {
    await Promise.all([sql.end(), passwords.close()])
  })
  app.decorate('sql', sql)
  app.decorate('passwords', passwords)
  app.decorate('verifyCaptcha', captchaVerifier(config))
  app.decorate('imagenes', imageHost(config.CLOUDINARY_URL))
  app.decorate('isStopping', false)

  validateRequests(app)
  parseJsonBodies(app)
  answerFailures(app)
  logRequests(app)
  if (config.METRICS === 'true') {
    // The metrics library is loaded by those who use it.
    const { default: metrics } = await import('./http/metrics.js')
    await app.register(metrics, { waitingHashes: passwords.waiting })
  }
  await app.register(authPlugin, config)
  await app.register(headers, { origins: config.CORS_ORIGIN })
  answerOddRequests(app)
  app.addHook('onRequest', async ({ is404 }) => {
    // Whatever comes with it is not looked at.
    if (is404) throw new Failure('notFound')
  })
  await app.register(docs, { examples: EXAMPLES })
  app.register(healthRoutes, { prefix: '/health' })

  const imageLimit = config.BODY_LIMIT_MIB * 1024 * 1024
  await app.register(async (api) => {
    identifyCallers(api)
    // Half of the connections are left to the others.
    takeTurns(api, Math.max(1, Math.floor(config.DATABASE_POOL_MAX / 2)))
    await limitLoad(api, imageLimit)
    guardRoutes(api, config)
    auditWrites(api)
    api.addHook('onRoute', documentFailures)
    api.register(authRoutes, { prefix: '/api/auth', loginRateLimit: config.LOGIN_RATE_LIMIT })
    api.register(usuarioRoutes, { prefix: '/api/usuario', imageLimit })
    api.register(perfilRoutes, { prefix: '/api/perfil' })
    api.register(moduloRoutes, { prefix: '/api/modulo' })
    api.register(permisosRoutes, { prefix: '/api/permisos' })
  })
  await app.ready()
  return app
}
