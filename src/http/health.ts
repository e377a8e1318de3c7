import { Type } from '@sinclair/typebox'
import { Failure, statusFailure } from './failures.js'
import type { RoutePlugin } from './validation.js'

const response = { 200: Type.Object({ status: Type.Literal('ok') }) }
const OK = { status: 'ok' as const }

/** `/health/live`: the process answers. `/health/ready`: it can serve, and is not about to stop. */
const healthRoutes: RoutePlugin = async (app) => {
  let asked: Promise<unknown> | undefined

  app.get('/live', {
    schema: { hide: true, response },
    handler: async () => OK,
  })

  app.get('/ready', {
    config: { failures: { unexpected: statusFailure(503, 'No disponible') } },
    schema: { hide: true, response },
    handler: async () => {
      if (app.isStopping) throw new Failure('unavailable', 'No disponible')
      // One query for all who ask meanwhile: anybody may.
      asked ??= app.sql`select require_primary()`
        .then(() => {})
        .finally(() => {
          asked = undefined
        })
      await asked
      return OK
    },
  })
}

export default healthRoutes
