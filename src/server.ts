import { setTimeout as sleep } from 'node:timers/promises'
import { buildApp } from './app.js'
import { ConfigError, loadConfig } from './config.js'
import { openDestination } from './http/observation/destination.js'
import { VERSION } from './version.js'

/**
 * How long stopping may take until the last log lines are written, in milliseconds. Docker kills a
 * container after 10 seconds.
 */
const EXIT_DEADLINE = 9000
/** How long `/health/ready` answers 503 before new connections are refused, in milliseconds. */
const NOT_READY_FOR = 500

const log = openDestination(process.stdout.fd)
let problem = 'llavero cannot start'

// Errors that the statements of this file throw end here, too.
process.on('uncaughtException', fail)

const config = loadConfig(process.env)
const { app, start } = await buildApp(config, log)
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
app.log.info({ version: VERSION, node: process.version }, 'the service starts')

await start()
problem = 'llavero has crashed'

/** Prints `problem` and the error, and ends the process with the exit code 1. */
async function fail(error: Error) {
  // Printing the stack reveals no secret. An error of a database connection contains the address of
  // the host, but never the password.
  const text = error instanceof ConfigError ? error.message : error.stack
  process.stderr.write(`${problem}\n${text}\n`)
  await exit(1)
}

/** Ends the process after it has written the last log lines. */
async function exit(code: number) {
  await log.end()
  process.exit(code)
}

/**
 * Answers the requests in flight and then ends the process, after EXIT_DEADLINE at the latest.
 * Ignores all signals after the first one. This function remains registered as their listener,
 * because without a listener Node would end the process at the next signal.
 */
async function stop(signal: NodeJS.Signals) {
  if (app.isStopping) return
  app.isStopping = true
  app.log.info({ signal }, 'the service stops')

  setTimeout(exit, EXIT_DEADLINE, 0)
  // If the service does not listen yet, no request can be lost, and PostgreSQL rolls back a
  // migration that has not ended.
  if (app.server.listening) {
    await sleep(NOT_READY_FOR)
    await app.close()
  }
  await exit(0)
}
