import type { FastifyBaseLogger } from 'fastify'
import type { Host } from './socket.js'

/**
 * Returns the listeners of a pool. They write one log line when the database is lost and one when it
 * serves again, however many connections fail in between. They also write the second line when another
 * host serves than before, even if the pool still had connections and the first line was not written.
 */
export function watchOutages(log: Pick<FastifyBaseLogger, 'info' | 'error'>) {
  let isLost = false
  /** The host that served last. */
  let primary: Host | undefined

  return {
    /** Called when the pool has no connection left and could not open one to `host`. */
    onLost(host: Host, err: Error) {
      if (isLost || !primary) return
      isLost = true
      log.error({ ...host, err }, 'the database is lost')
    },
    /** Called when the pool has opened a connection to `host`. */
    onServing(host: Host) {
      const isOther = primary !== undefined && primary !== host
      if (isLost || isOther) log.info(host, 'the database serves again')
      isLost = false
      primary = host
    },
  }
}
