import type { FastifyBaseLogger } from 'fastify'
import type { Host } from './socket.js'

/**
 * Returns the listeners of a pool. They write one log line when the database is lost and one when it
 * serves again, however many connections fail in between.
 */
export function watchOutages(log: Pick<FastifyBaseLogger, 'info' | 'error'>) {
  let state: 'not yet served' | 'serving' | 'lost' = 'not yet served'

  return {
    /** Called when the pool has no connection left and could not open one to `host`. */
    onLost(host: Host, err: Error) {
      if (state !== 'serving') return
      state = 'lost'
      log.error({ ...host, err }, 'the database is lost')
    },
    /** Called when the pool has opened a connection to `host`. */
    onServing(host: Host) {
      if (state === 'lost') log.info(host, 'the database serves again')
      state = 'serving'
    },
  }
}
