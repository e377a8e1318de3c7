import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    /** Whether the service is about to stop. From then on `/health/ready` answers 503. */
    isStopping: boolean
  }
}

/** How long `/health/ready` answers 503 while connections are still accepted, in milliseconds. */
const NOTICE = 500
/** How long an idle connection stays open after that, in milliseconds. */
const IDLE_GRACE = 2000

/**
 * Keeps idle connections open for a moment when the application closes. New connections are refused
 * at once, so a proxy sends its next requests to another replica. A connection that is already open
 * gets one more answer, with `Connection: close`. If no request arrives, the connection is closed
 * after IDLE_GRACE.
 *
 * The `close` of Node's `http.Server` closes the idle connections at the same moment as it stops
 * accepting new ones. A request that was already sent on such a connection is lost, and a proxy must
 * not repeat a POST (https://github.com/nodejs/node/issues/60617). So the hook calls the `close` of
 * `net.Server`, which only stops accepting connections. After the hook Fastify calls the `close` of
 * `http.Server`, which closes the idle connections and waits for the requests in flight.
 */
export function keepIdleConnections(app: FastifyInstance) {
  app.decorate('isStopping', false)
  app.addHook('preClose', async () => {
    const allEnded = once(app.server, 'close')
    net.Server.prototype.close.call(app.server)
    await Promise.race([allEnded, sleep(IDLE_GRACE, undefined, { ref: false })])
  })
}

/** Closes a listening application, NOTICE after `/health/ready` has begun to answer 503. */
export async function drain(app: FastifyInstance) {
  app.isStopping = true
  await sleep(NOTICE)
  await app.close()
}
