import type { FastifyPluginAsync } from 'fastify'
import { Failure, USUAL } from '../answers/failures.js'

const OK = { status: 'ok' }

interface Options {
  /** Rejects if the database cannot be queried, or if it has become a standby. */
  queryDatabase(): Promise<unknown>
}

/**
 * `/health/live` answers with 200 whenever the process can answer at all. `/health/ready` answers
 * with 503 while the database cannot be queried, and when the service is about to stop.
 */
const healthRoutes: FastifyPluginAsync<Options> = async (app, { queryDatabase }) => {
  /** The query in flight. Requests that arrive before it ends share it. */
  let query: Promise<unknown> | undefined

  app.get('/live', async () => OK)

  app.get('/ready', {
    config: {
      failures: { unexpected: USUAL.unavailable },
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

export default healthRoutes
