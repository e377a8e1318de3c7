import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { type Config, ConfigError, loadConfig } from './config.js'
import { openPrimary } from './database/connection.js'
import { migrate } from './database/migrations.js'
import { ensureAdministrador } from './usuario/administrador.js'

/** In milliseconds: how long not ready but still open; how long idle connections stay; the whole stop. */
const NOTICE = 500
const IDLE_GRACE = 2000
const EXIT_DEADLINE = 9000

let app: FastifyInstance | undefined

// In a container nobody else ends the process.
process.once('SIGTERM', stop)
process.once('SIGINT', stop)

try {
  app = await start(loadConfig(process.env))
} catch (error) {
  // A database's connection error has its address but never the password.
  const { message, stack } = error as Error
  const text = error instanceof ConfigError ? message : stack
  process.stderr.write(`llavero cannot start\n${text}\n`)
  process.exit(1)
}

/** Migrations, the first administrator, then listening. */
async function start(config: Config) {
  // Not before the configuration is known to be good: the image SDK reads CLOUDINARY_URL when it
  // is imported, and throws at one that it does not like.
  const { buildApp } = await import('./app.js')
  const app = await buildApp(config)
  const connection = await openPrimary(config)
  const applied = await migrate(connection.driver)
  await connection.end()
  if (applied) app.log.info({ applied }, 'database is up to date')
  else app.log.warn('the schema is newer than this release: nothing is changed')
  await ensureAdministrador(app.sql, app, config)
  await app.listen({ host: config.HOST, port: config.PORT })
  return app
}

/**
 * Finishes what is in flight so that a proxy in front sees no request fail: it may not repeat a POST
 * whose connection is cut. New connections are refused, which it takes to another replica; those
 * that it keeps end with their next answer, or once they have long been idle.
 */
async function stop() {
  setTimeout(() => process.exit(0), EXIT_DEADLINE).unref()
  // Before the service is up there is nothing to finish: what a migration has begun is undone.
  if (app) {
    app.isStopping = true
    await sleep(NOTICE)
    const { server } = app
    const closeIdle = server.closeIdleConnections.bind(server)
    // Closing the server would cut them at once.
    server.closeIdleConnections = () => {}
    setTimeout(closeIdle, IDLE_GRACE)
    await app.close()
  }
  process.exit(0)
}
