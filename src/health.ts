import { Type } from '@sinclair/typebox'
import { statusFailure } from './answers.js'
import { Failure } from './failure.js'
import type { RoutePlugin } from './validation.js'

const Estado = Type.Object({ status: Type.Literal('ok') })

/** `/health/live`: the process answers. `/health/ready`: it can serve, and is not shutting down. */
const healthRoutes: RoutePlugin = async (app) => {
  const { sql } = app
  let asked: Promise<unknown> | undefined

  /** Asks the database once for all who wait for it: anybody may. */
  function askDatabase() {
    asked ??= sql`select require_primary()`
      .then(() => {})
      .finally(() => {
        asked = undefined
      })
    return asked
  }

  app.route({
    method: 'GET',
    url: '/live',
    config: { access: 'public' },
    schema: { hide: true, response: { 200: Estado } },
    handler: async () => ({ status: 'ok' as const }),
  })

  app.route({
    method: 'GET',
    url: '/ready',
    config: { access: 'public', failures: { unexpected: statusFailure(503, 'No disponible') } },
    schema: { hide: true, response: { 200: Estado } },
    handler: async () => {
      if (app.leaving) throw new Failure('unavailable', 'No disponible')
      await askDatabase()
      return { status: 'ok' as const }
    },
  })
}

export default healthRoutes
