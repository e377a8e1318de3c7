import { ConfigError, loadConfig } from './config.js'
import type { Service } from './serve.js'

/** The latest that the process ends after a signal, in milliseconds. */
const EXIT_DEADLINE = 9000

let service: Service | undefined
let stopping = false

/** Before the service is up there is nothing to finish: what a migration has begun is undone. */
function stop() {
  if (stopping) return
  stopping = true
  setTimeout(() => process.exit(0), EXIT_DEADLINE).unref()
  Promise.resolve(service?.close()).then(
    () => process.exit(0),
    () => process.exit(1),
  )
}
// In a container nobody else ends the process.
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
process.on('SIGHUP', stop)

try {
  const config = loadConfig(process.env)
  // Not before the configuration is known to be good: the image SDK reads CLOUDINARY_URL when it
  // is imported, and throws at one that it does not like.
  const { serve } = await import('./serve.js')
  service = await serve(config)
} catch (error) {
  const text = error instanceof ConfigError ? error.message : describe(error)
  process.stderr.write(`llavero cannot start\n${text}\n`)
  process.exit(1)
}

/** A database's connection error has its address but never the password. */
function describe(error: unknown) {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
