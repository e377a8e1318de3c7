import type { FastifyBaseLogger } from 'fastify'
import type { Host } from './socket.js'

/**
 * Writes one log line when the database is lost and one when it serves again, however many
 * connections fail between the two.
 */
export function watchOutages(log: Pick<FastifyBaseLogger, 'info' | 'error'>) {
  let state: 'not yet served' | 'serving' | 'lost' = 'not yet served'

  return {
    /** No connection is left, and none to `host` could be opened. */
    onLost(host: Host, err: Error) {
      if (state !== 'serving') return
      state = 'lost'
      log.error({ ...host, err }, 'the database is lost')
    },
    /** A connection to `host` was opened. */
    onServing(host: Host) {
      if (state === 'lost') log.info(host, 'the database serves again')
      state = 'serving'
    },
  }
}
