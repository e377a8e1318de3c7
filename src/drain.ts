import net, { type Socket } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

/** How long the service is not ready before it refuses connections, in milliseconds. */
const NOTICE = 500
/** How long a connection may then stay idle, in milliseconds. */
const IDLE_GRACE = 2000
/** Shorter is a turn of the event loop without work, milliseconds. */
const QUIET_TURN = 0.05
/** After so long, twice as much counts as quiet, and so on; and when any turn has to do; ms. */
const QUIET_DOUBLING = 300
const QUIET_TIMEOUT = 2500

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
  let accepted = 0
  server.on('connection', (socket) => {
    accepted += 1
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })

  return async () => {
    app.leaving = true
    await sleep(NOTICE)
    await quietTurn(() => accepted)
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
 * Ends with a turn of the event loop that accepted no connection and had nothing else to do: what
 * comes in while a turn works waits in the system's queue, of which each turn takes one, and is
 * reset when the server stops listening. Where the machine is too busy for that, a turn that was
 * short has to do, and the longer this takes the less short, until any will.
 */
async function quietTurn(accepted: () => number) {
  const start = performance.now()
  for (let begin = start; begin - start < QUIET_TIMEOUT; ) {
    const before = accepted()
    await setImmediate()
    const end = performance.now()
    const quiet = QUIET_TURN * 2 ** ((end - start) / QUIET_DOUBLING)
    if (accepted() === before && end - begin < quiet) return
    begin = end
  }
}
