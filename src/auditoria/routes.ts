import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { SuccessOf, success } from '../http/answers/envelopes.js'
import { Failure, statusCodeAnswer } from '../http/answers/failures.js'
import { findOrigenDePermiso, listAuditoria } from './queries.js'
import { AuditoriaFiltro, Filas, OrigenFiltro, PaginaDeAuditoria } from './schemas.js'

// These routes declare no access, so only administrators may use them.
const auditoriaRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/', {
    config: {
      failures: {
        invalid: statusCodeAnswer(400, 'El campo entidad es obligatorio si hay un id'),
      },
    },
    schema: {
      operationId: 'listAuditoria',
      summary: 'Listar los cambios, los últimos primero',
      querystring: AuditoriaFiltro,
      response: { 200: PaginaDeAuditoria },
    },
    handler: async ({ sql, query }) => {
      if (query.id !== undefined && query.entidad === undefined) {
        throw new Failure('invalid')
      }
      return success(await listAuditoria(sql, query))
    },
  })

  app.get('/origen', {
    schema: {
      operationId: 'findOrigenDePermiso',
      summary: 'Consultar cómo obtuvo un usuario un permiso',
      description: 'Las filas por las que lo obtuvo, las primeras primero.',
      querystring: OrigenFiltro,
      response: { 200: SuccessOf(Filas) },
    },
    handler: async ({ sql, query }) => success({ data: await findOrigenDePermiso(sql, query) }),
  })
}

export default auditoriaRoutes
