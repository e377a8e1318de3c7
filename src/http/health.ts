import { Type } from '@sinclair/typebox'
import { Failure, statusFailure } from './failures.js'
import type { RoutePlugin } from './validation.js'

const response = { 200: Type.Object({ status: Type.Literal('ok') }) }
const OK = { status: 'ok' as const }

/** `/health/live`: the process answers. `/health/ready`: it can serve, and is not about to stop. */
const healthRoutes: RoutePlugin = async (app) => {
  const { sql } = app
  let asked: Promise<unknown> | undefined

  /** Asks the database once for all who wait for it: anybody may. */
  async function askDatabase() {
    asked ??= sql`select require_primary()`.then(() => {})
    await asked.finally(() => {
      asked = undefined
    })
  }

  app.get('/live', {
    schema: { hide: true, response },
    handler: async () => OK,
  })

  app.get('/ready', {
    config: { failures: { unexpected: statusFailure(503, 'No disponible') } },
    schema: { hide: true, response },
    handler: async () => {
      if (app.isStopping) throw new Failure('unavailable', 'No disponible')
      await askDatabase()
      return OK
    },
  })
}

export default healthRoutes
