import { randomUUID } from 'node:crypto'
import { Readable, type Writable } from 'node:stream'
import Fastify, { type FastifyInstance, type FastifyReply, LogController } from 'fastify'
import { answerFailures, notFound, refuse, UNREADABLE } from './answers.js'
import { auditWrites } from './audit.js'
import { guardRoutes } from './auth/access.js'
import { captchaVerifier, type VerifyCaptcha } from './auth/captcha.js'
import { type Passwords, startPasswords } from './auth/password.js'
import authPlugin from './auth/plugin.js'
import authRoutes from './auth/routes.js'
import { parseJsonBodies } from './body.js'
import type { Config } from './config.js'
import { maxConnections } from './descriptors.js'
import docs from './docs.js'
import headers, { API_HEADERS } from './headers.js'
import healthRoutes from './health.js'
import { logAnswer, logOptions, logRequests } from './log.js'
import metrics from './metrics.js'
import moduloRoutes from './modulo/routes.js'
import { shedOverload } from './overload.js'
import perfilRoutes from './perfil/routes.js'
import permisosRoutes from './permisos/routes.js'
import { boundPipelines } from './pipeline.js'
import { openPool, type Pool } from './pool.js'
import { type Imagenes, imageHost } from './usuario/imagen.js'
import usuarioRoutes from './usuario/routes.js'
import { checkPathsFirst, validatorCompiler } from './validation.js'

declare module 'fastify' {
  interface FastifyInstance {
    sql: Pool
    passwords: Passwords
    verifyCaptcha: VerifyCaptcha
    imagenes: Imagenes
    /** Whether the service is about to stop: it is not ready any more. */
    leaving: boolean
  }
}

/** The longest request header, and with it the longest id in a path. */
const MAX_HEADER = 16_384

/**
 * In milliseconds: the longest that a request may take to come in, the longest that its headers may
 * and how often both are looked after, and the longest that its answer may take to be read.
 */
const REQUEST_TIMEOUT = 120_000
const HEADERS_LIMITS = { headersTimeout: 15_000, connectionsCheckingInterval: 5000 }
const ANSWER_TIMEOUT = 60_000

/**
 * The whole service, not listening yet. Closing it ends the pool and the threads that it opened.
 * `logStream` takes the log lines instead of the standard output.
 */
export async function buildApp(
  config: Config,
  { logStream }: { logStream?: Writable | undefined } = {},
): Promise<FastifyInstance> {
  const app = Fastify({
    logger: logOptions(config.logLevel, logStream),
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    trustProxy: config.trustProxy,
    routerOptions: { maxParamLength: MAX_HEADER },
    http: { maxHeaderSize: MAX_HEADER, ...HEADERS_LIMITS },
    requestTimeout: REQUEST_TIMEOUT,
    // What still arrives on open connections while the server closes is served to its end.
    return503OnClosing: false,
    clientErrorHandler: refuse,
    // A path that can't be decoded: no hook runs for it.
    frameworkErrors: (_error, request, reply: FastifyReply) => {
      reply.code(400).headers({ ...API_HEADERS, 'x-request-id': request.id })
      reply.send(UNREADABLE)
      logAnswer(request, reply)
    },
  })

  // Node's own answer to an expectation other than 100-continue is a bare 417.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })

  const connections = maxConnections()
  if (connections) app.server.maxConnections = connections

  const sql = await openPool(config, (err) => app.log.warn({ err }, 'no host of the database'))
  const passwords = startPasswords()
  app.addHook('onClose', async () => {
    await Promise.all([sql.end({ timeout: 1 }), passwords.close()])
  })
  app.decorate('sql', sql)
  app.decorate('passwords', passwords)
  app.decorate('verifyCaptcha', captchaVerifier(config))
  app.decorate('imagenes', imageHost(config.cloudinary))
  app.decorate('leaving', false)
  app.addHook('preClose', async () => {
    app.leaving = true
  })

  app.setValidatorCompiler(validatorCompiler)
  checkPathsFirst(app)
  parseJsonBodies(app, config.bodyLimit)
  answerFailures(app, config.bodyLimit)
  boundPipelines(app)
  logRequests(app)
  limitAnswers(app)
  if (config.metrics) await app.register(metrics, config)
  await app.register(authPlugin, config)
  await app.register(headers, { corsOrigin: config.corsOrigin })
  // Whatever comes with it is not looked at.
  app.addHook('onRequest', ({ is404 }, _reply, done) => done(is404 ? notFound() : undefined))
  await app.register(docs)

  await app.register(async (guarded) => {
    await shedOverload(guarded)
    guardRoutes(guarded, config)
    auditWrites(guarded)
    guarded.register(healthRoutes, { prefix: '/health' })
    guarded.register(authRoutes, { prefix: '/api/auth', loginRateLimit: config.loginRateLimit })
    guarded.register(usuarioRoutes, { prefix: '/api/usuario' })
    guarded.register(perfilRoutes, { prefix: '/api/perfil' })
    guarded.register(moduloRoutes, { prefix: '/api/modulo' })
    guarded.register(permisosRoutes, { prefix: '/api/permisos' })
  })
  await app.ready()
  return app
}

/** Cuts the connection of a client that does not take its answer in time, however slowly it reads. */
function limitAnswers(app: FastifyInstance) {
  app.addHook('onSend', (_request, { raw }, payload, done) => {
    // The timer would keep what a client that has gone had sent, and nobody would close a file.
    if (raw.destroyed) {
      if (payload instanceof Readable) payload.destroy()
      return done()
    }
    const timer = setTimeout(() => raw.destroy(), ANSWER_TIMEOUT).unref()
    raw.once('close', () => clearTimeout(timer))
    done()
  })
}
