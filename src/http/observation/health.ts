import type { FastifyInstance } from 'fastify'
import { Failure, USUAL_ANSWERS } from '../answers/failures.js'

const OK = { status: 'ok' }

/**
 * Adds `/health/live`, which answers with 200 whenever the process can answer at all, and
 * `/health/ready`, which answers with 503 while the database cannot be queried, and when the
 * service is about to stop. `queryDatabase` rejects if the database cannot be queried, or if the
 * database has become a standby.
 */
export function addHealth(app: FastifyInstance, queryDatabase: () => Promise<unknown>) {
  /** The query in flight. Requests that arrive before it ends share it. */
  let query: Promise<unknown> | undefined

  app.get('/health/live', async () => OK)

  app.get('/health/ready', {
    config: {
      failures: { unexpected: USUAL_ANSWERS.unavailable },
    },
    handler: async () => {
      // The route needs no session, so anybody can send any number of requests. They all share one
      // query, so they occupy at most one connection of the pool.
      query ??= queryDatabase().finally(() => {
        query = undefined
      })
      await query
      if (app.isStopping) throw new Failure('unavailable')
      return OK
    },
  })
}
