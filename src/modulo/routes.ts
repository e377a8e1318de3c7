import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ConfirmationOf, DELETED, PageOf, SuccessOf, success } from '../http/answers/envelopes.js'
import { Failure, statusCodeAnswer, successFalseAnswer } from '../http/answers/failures.js'
import {
  deleteModulo,
  insertModulo,
  listModulos,
  listTodosLosModulos,
  updateModulo,
} from './queries.js'
import { Modulo, ModuloEnviado, ModuloFiltro, ModuloParams } from './schemas.js'

const NO_CREADO = 'No se pudo crear el módulo en la base de datos.'
const NO_ACTUALIZADO = 'No se pudo actualizar el módulo.'

const moduloRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/', {
    config: {
      access: { modulo: 'MODULO', accion: 'bitConsulta' },
      failures: {
        unexpected: successFalseAnswer(500, 'Ocurrió un error al consultar los módulos.'),
      },
    },
    schema: {
      operationId: 'listModulos',
      summary: 'Listar los módulos',
      querystring: ModuloFiltro,
      response: { 200: PageOf(Modulo) },
    },
    handler: async ({ sql, query }) => success(await listModulos(sql, query)),
  })

  app.get('/list', {
    config: {
      access: 'session',
      failures: {
        unexpected: statusCodeAnswer(500, 'Error al cargar módulos'),
      },
    },
    schema: {
      operationId: 'listTodosLosModulos',
      summary: 'Listar todos los módulos, sin páginas',
      description: 'Necesita una sesión.',
      response: { 200: SuccessOf(Type.Array(Modulo, { description: 'Todos los módulos' })) },
    },
    handler: async ({ sql }) => success({ data: await listTodosLosModulos(sql) }),
  })

  app.post('/', {
    config: {
      access: { modulo: 'MODULO', accion: 'bitAgregar' },
      failures: {
        invalid: successFalseAnswer(200),
        conflict: successFalseAnswer(200, NO_CREADO),
        unexpected: successFalseAnswer(200, NO_CREADO),
      },
    },
    schema: {
      operationId: 'createModulo',
      summary: 'Crear un módulo',
      body: ModuloEnviado,
      response: { 200: SuccessOf(Modulo) },
    },
    handler: async ({ sql, caller, body }) => success(await insertModulo(sql, body, caller)),
  })

  app.put('/:id', {
    config: {
      access: { modulo: 'MODULO', accion: 'bitEditar' },
      failures: {
        invalid: successFalseAnswer(200),
        conflict: successFalseAnswer(200, NO_ACTUALIZADO),
        unexpected: successFalseAnswer(200, NO_ACTUALIZADO),
      },
    },
    schema: {
      operationId: 'updateModulo',
      summary: 'Renombrar un módulo',
      description: 'Si ningún módulo tiene ese id, la respuesta no lleva data.',
      params: ModuloParams,
      body: ModuloEnviado,
      response: { 200: SuccessOf(Type.Optional(Modulo)) },
    },
    handler: async ({ sql, caller, params, body }) => {
      const { data } = await updateModulo(sql, params.id, body, caller)
      return success({ data: data ?? undefined })
    },
  })

  app.delete('/:id', {
    config: {
      access: { modulo: 'MODULO', accion: 'bitEliminar' },
      failures: {
        invalid: successFalseAnswer(200),
        conflict: successFalseAnswer(200, 'No se puede eliminar un módulo del sistema.'),
        unexpected: successFalseAnswer(200, 'No se pudo eliminar el módulo.'),
      },
    },
    schema: {
      operationId: 'deleteModulo',
      summary: 'Eliminar un módulo con sus permisos',
      params: ModuloParams,
      response: { 200: ConfirmationOf(DELETED) },
    },
    handler: async ({ sql, caller, params }) => {
      const { deleted } = await deleteModulo(sql, params.id, caller)
      if (!deleted) throw new Failure('conflict')
      return DELETED
    },
  })
}

export default moduloRoutes
