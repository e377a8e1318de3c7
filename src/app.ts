import { randomUUID } from 'node:crypto'
import { createServer, maxHeaderSize } from 'node:http'
import underPressure from '@fastify/under-pressure'
import Fastify, { LogController } from 'fastify'
import { guardRoutes } from './access/guard.js'
import { startPasswords } from './access/password.js'
import { reportRefusals } from './access/refusal.js'
import { addTokens } from './access/token.js'
import auditoriaRoutes from './auditoria/routes.js'
import authRoutes from './auth/routes.js'
import type { Config } from './config.js'
import { openPrimary } from './database/connection.js'
import { migrate } from './database/migrations.js'
import { openPool } from './database/pool.js'
import { answerFailures } from './http/answers/failures.js'
import { addHeaders } from './http/answers/headers.js'
import { refuseConnection, refuseOddRequests, UNREADABLE_URL } from './http/answers/unreadable.js'
import { serveDocs } from './http/document/docs.js'
import { keepIdleConnections } from './http/drain.js'
import { validateRequests } from './http/input/validation.js'
import { BODY_LIMIT, parseJsonBodies } from './http/limits/bodies.js'
import { limitChunks } from './http/limits/chunks.js'
import { limitPipelining } from './http/limits/pipelining.js'
import { addHealth } from './http/observation/health.js'
import { type LogStream, logOptions, logRequests } from './http/observation/log.js'
import moduloRoutes from './modulo/routes.js'
import perfilRoutes from './perfil/routes.js'
import permisosRoutes from './permisos/routes.js'
import { ensureAdministrador } from './usuario/administrador.js'
import usuarioRoutes from './usuario/routes.js'

/** Requests to /api are refused while the event loop lags by more than this, in milliseconds. */
const MAX_LOOP_DELAY = 1000

/** The descriptions that the OpenAPI document contains besides the routes. */
const ABOUT = {
  description: 'Control de acceso: usuarios, perfiles, módulos y la matriz de permisos.',
  tags: [
    { name: 'auth', description: 'Inicio de sesión' },
    { name: 'usuario', description: 'Usuarios' },
    { name: 'perfil', description: 'Perfiles' },
    { name: 'modulo', description: 'Módulos' },
    { name: 'permisos', description: 'La matriz de permisos' },
    { name: 'auditoria', description: 'Quién hizo qué cambio' },
  ],
}

/**
 * Returns the service as `app`, with its pool and its threads that hash passwords. The app listens
 * only after `start`. When it is closed, it ends the pool and the threads. The log lines are
 * written to `logStream`.
 *
 * Fastify runs the hooks of requests in the order in which they are added, so the order of the
 * calls below matters. docs/architecture.md, section `The way of a request`, has the steps with
 * their files.
 */
export async function buildApp(config: Config, logStream: LogStream) {
  const app = Fastify({
    logger: logOptions(config.LOG_LEVEL, logStream),
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    trustProxy: config.TRUST_PROXY,
    bodyLimit: BODY_LIMIT,
    // A path parameter may be as long as the head of a request.
    routerOptions: { maxParamLength: maxHeaderSize },
    // Without this function, Fastify would make a second server for the other address of
    // `localhost`. That server would have none of the listeners and limits below.
    serverFactory: (handler) =>
      createServer(
        {
          // How long the head of a request may take to arrive, in milliseconds.
          headersTimeout: 15_000,
          // How often Node checks headersTimeout and requestTimeout, in milliseconds.
          connectionsCheckingInterval: 1000,
          // Node would refuse a request without `Host` itself, with an empty body.
          // refuseOddRequests refuses it with a body like that of any other failure.
          requireHostHeader: false,
          // How long a whole request may take to arrive, in milliseconds.
          requestTimeout: 120_000,
          // How long a connection may be idle, in milliseconds.
          keepAliveTimeout: 72_000,
        },
        limitChunks(limitPipelining(handler)),
      ),
    // Requests that arrive on open connections while the server closes are still served.
    return503OnClosing: false,
    // Called for a URL that the router cannot read, before any hook. The request is routed again,
    // so that the hooks run and refuseOddRequests refuses it.
    frameworkErrors: (_error, { raw }, reply) => {
      raw.url = UNREADABLE_URL
      app.routing(raw, reply.raw)
    },
    clientErrorHandler: ({ code }, connection) => {
      refuseConnection(app, connection, code)
    },
  })

  const pool = openPool(config, app.log)
  const passwords = startPasswords()

  app.addHook('onClose', pool.end)
  app.addHook('onClose', passwords.close)

  validateRequests(app)
  answerFailures(app)
  logRequests(app)
  if (config.METRICS === 'true') {
    // The metrics library is loaded only when it is used.
    const { addMetrics } = await import('./http/observation/metrics.js')
    addMetrics(app, pool.usage, () => logStream.dropped ?? 0, {
      name: 'llavero_password_hashes_waiting',
      help: 'Password hashes that wait for a thread',
      collect() {
        this.set(passwords.waiting())
      },
    })
  }
  const imageLimit = config.BODY_LIMIT_MIB * 1024 * 1024
  parseJsonBodies(app, imageLimit)
  keepIdleConnections(app)
  const verifyToken = await addTokens(app, config)
  await addHeaders(app, config.CORS_ORIGIN)
  refuseOddRequests(app)
  if (config.DOCS === 'true') await serveDocs(app, ABOUT)
  addHealth(app, () => pool`select require_primary()`)

  await app.register(async (api) => {
    await api.register(underPressure, { maxEventLoopDelay: MAX_LOOP_DELAY })
    guardRoutes(api, verifyToken, pool, config)
    reportRefusals(api)
    api.register(authRoutes, { prefix: '/api/auth', pool, passwords, config })
    api.register(usuarioRoutes, { prefix: '/api/usuario', passwords, config, imageLimit })
    api.register(perfilRoutes, { prefix: '/api/perfil' })
    api.register(moduloRoutes, { prefix: '/api/modulo' })
    api.register(permisosRoutes, { prefix: '/api/permisos', pool })
    api.register(auditoriaRoutes, { prefix: '/api/auditoria' })
  })

  /**
   * Brings the database up to date, sets up the first administrator, and listens. Returns the URL
   * of the service.
   */
  async function start() {
    const primary = await openPrimary(config)
    const applied = await migrate(primary)
    await primary.end()
    if (applied) app.log.info({ applied }, 'database is up to date')
    else app.log.warn('the schema is newer than this release: nothing is changed')

    // The statement goes through the pool, for two reasons. If a pooler refuses the pool's
    // settings, the start fails here, and not the first request. And the pool's statements have a
    // time limit, so a replica that has been killed meanwhile makes nobody an administrator later.
    await ensureAdministrador(pool, passwords, config, app.log)
    return app.listen({ host: config.HOST, port: config.PORT })
  }

  return { app, pool, passwords, start }
}
