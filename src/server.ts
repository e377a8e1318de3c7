import type { FastifyInstance } from 'fastify'
import { buildApp } from './app.js'
import { type Config, ConfigError, loadConfig } from './config.js'
import { openPrimary } from './database/connection.js'
import { migrate } from './database/migrations.js'
import { drain } from './http/drain.js'
import { openOutput } from './http/output.js'
import { ensureAdministrador } from './usuario/administrador.js'

/** How long a stop may take, in milliseconds. Docker kills a container after 10 s. */
const EXIT_DEADLINE = 9000

const output = openOutput(process.stdout)
// On every way out but a kill: an uncaught exception too.
process.on('exit', output.end)

let app: FastifyInstance | undefined
let isStopping = false

process.on('SIGTERM', stop)
process.on('SIGINT', stop)

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
  const app = await buildApp(config, { logStream: output })
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
 * Answers what is in flight, then ends the process. Further signals are ignored, as the first one
 * has a deadline: without a listener they would end the process amid a request.
 */
async function stop() {
  if (isStopping) return
  isStopping = true
  setTimeout(() => process.exit(0), EXIT_DEADLINE).unref()
  // Before the service listens no request can be lost, and PostgreSQL rolls a migration back.
  if (app) await drain(app)
  process.exit(0)
}
