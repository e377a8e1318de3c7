import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    /** Whether the service is about to stop; `/health/ready` is 503 then. */
    isStopping: boolean
  }
}

/** How long `/health/ready` is 503 while new connections are still accepted, in milliseconds. */
const NOTICE = 500
/** How long a kept connection may stay idle after that, in milliseconds. */
const IDLE_GRACE = 2000

/**
 * Lets the clients of kept connections finish when the application closes. New connections are
 * refused at once, so a proxy sends those requests to another replica. A connection that is already
 * open gets one more answer, with `Connection: close`; if no request comes, it is closed after
 * IDLE_GRACE.
 *
 * Node by itself closes idle connections at the moment when it refuses new ones. A request that is on
 * its way then is lost, and a proxy must not repeat a POST
 * (https://github.com/nodejs/node/issues/60617). The close of `net.Server` refuses new connections
 * and leaves the open ones alone. After the hook Fastify calls the close of `http.Server`, which
 * closes the idle ones as well and waits for the requests in flight.
 */
export function keepIdleConnections(app: FastifyInstance) {
  app.decorate('isStopping', false)
  app.addHook('preClose', async () => {
    const allEnded = once(app.server, 'close')
    net.Server.prototype.close.call(app.server)
    await Promise.race([allEnded, sleep(IDLE_GRACE, undefined, { ref: false })])
  })
}

/** Closes a listening application after a notice to the proxies that ask for `/health/ready`. */
export async function drain(app: FastifyInstance) {
  app.isStopping = true
  await sleep(NOTICE)
  await app.close()
}
