import type { FastifyBaseLogger } from 'fastify'
import type { Host } from './socket.js'

/**
 * Returns two functions that log the outages of a pool's database. One line is logged when the
 * database is lost, and one when it serves again, however many connections fail in between.
 *
 * In a failover it can happen that the pool never loses its last connection. Then the line "the
 * database is lost" is not logged, but "the database serves again" is, because another host serves
 * now.
 */
export function watchOutages(log: Pick<FastifyBaseLogger, 'info' | 'error'>) {
  let isLost = false
  /** The host that served last. Undefined until the pool has opened its first connection. */
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
