import { once } from 'node:events'
import net from 'node:net'
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    /** Whether the service is about to stop. From then on `/health/ready` answers 503. */
    isStopping: boolean
  }
}

/** How long idle connections stay open after new ones are refused, in milliseconds. */
const IDLE_GRACE = 2000

/**
 * The method of `net.Server`, the base class of `http.Server`, that makes the server stop accepting
 * connections and keeps those that are open.
 *
 * The `close` of `http.Server` also closes the idle connections at once. A request that is already
 * on its way on such a connection is then lost (https://github.com/nodejs/node/issues/60617). If
 * the service went on accepting connections during IDLE_GRACE, proxies would open new ones to a
 * process that is about to end.
 */
const stopAccepting = net.Server.prototype.close

/**
 * Keeps idle connections open for a moment when the application closes. New connections are refused
 * at once, so a proxy sends its next requests to another replica. Fastify answers a request that
 * arrives on an open connection with `Connection: close`. After IDLE_GRACE it closes the
 * connections that are still idle, and waits for the requests in flight. The hook below adds
 * `Connection: close` to their answers.
 *
 * Node counts a connection as idle once its answer is complete, even if the client has fetched only
 * a part of it. So a large answer to a slow client is cut off.
 */
export function keepIdleConnections(app: FastifyInstance) {
  let isGraceOver = false
  app.decorate('isStopping', false)
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (isGraceOver) reply.header('connection', 'close')
    done()
  })
  app.addHook('preClose', async () => {
    stopAccepting.call(app.server)
    const signal = AbortSignal.timeout(IDLE_GRACE)
    await once(app.server, 'close', { signal }).catch(() => {})
    isGraceOver = true
  })
}
