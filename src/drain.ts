import net, { type Socket } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

/** How long the service is not ready before it refuses connections, in milliseconds. */
const NOTICE = 500
/** How long a connection may then stay idle, in milliseconds. */
const IDLE_GRACE = 2000
/** Shorter is a turn of the event loop without work, which is waited for so long; milliseconds. */
const QUIET_TURN = 0.05
const QUIET_TIMEOUT = 2000

/**
 * Gives what has to come before `app.close()` so that a proxy in front sees no request fail. It
 * can't know whether a POST was carried out whose connection was cut, and may not repeat it. So:
 * 1. for NOTICE, all is as before but /health/ready: proxies that ask it leave by themselves;
 * 2. new connections are refused, which proxies take to another replica, whatever the method;
 * 3. idle connections stay for IDLE_GRACE. Once `app.close()` has begun, each answer ends its own.
 *
 * To be called before the server listens.
 */
export function drainer(app: FastifyInstance) {
  const { server } = app
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })

  return async () => {
    app.leaving = true
    await sleep(NOTICE)
    await quietTurn()
    net.Server.prototype.close.call(server)

    // Node's own close(), which app.close() calls, would cut the idle ones.
    const closeIdle = server.closeIdleConnections.bind(server)
    server.closeIdleConnections = () => {}
    // For those that become idle from now on.
    server.keepAliveTimeout = IDLE_GRACE
    setTimeout(() => {
      closeIdle()
      // One that was never used is not idle for Node, but about to send.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    }, IDLE_GRACE).unref()
  }
}

/**
 * Ends with a turn of the event loop that had nothing to do: connections that the system accepts
 * while a turn works are still in its queue, and are reset when the server stops listening.
 */
async function quietTurn() {
  const deadline = performance.now() + QUIET_TIMEOUT
  for (let begin = performance.now(), end = begin; end < deadline; begin = end) {
    await setImmediate()
    end = performance.now()
    if (end - begin < QUIET_TURN) return
  }
}
