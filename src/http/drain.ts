import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

/** How long `/health/ready` is 503 while new connections are still taken, in milliseconds. */
const NOTICE = 500
/** How long a kept connection may stay idle after that, in milliseconds. */
const IDLE_GRACE = 2000

/**
 * Closes a listening application once every request in flight has its answer. A proxy in front sees
 * no request fail: it must not repeat a POST whose connection was cut. New connections are refused,
 * so the proxy takes them to another replica. A kept connection ends with its next answer, or when
 * it has been idle for IDLE_GRACE.
 */
export async function drain(app: FastifyInstance) {
  app.isStopping = true
  await sleep(NOTICE)
  const { server } = app
  const closeIdle = server.closeIdleConnections.bind(server)
  // Fastify calls this when it begins to close: a request on its way to us would be lost.
  server.closeIdleConnections = () => {}
  setTimeout(closeIdle, IDLE_GRACE)
  await app.close()
}
