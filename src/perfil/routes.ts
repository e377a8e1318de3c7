import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ConfirmationOf, DELETED, PageOf, SuccessOf, success } from '../http/answers/envelopes.js'
import { Failure, statusCodeAnswer, successFalseAnswer } from '../http/answers/failures.js'
import {
  deletePerfil,
  insertPerfil,
  listPerfiles,
  listTodosLosPerfiles,
  updatePerfil,
} from './queries.js'
import {
  Perfil,
  PerfilBreve,
  PerfilEditado,
  PerfilFiltro,
  PerfilNuevo,
  PerfilParams,
} from './schemas.js'

const perfilRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/', {
    config: {
      access: { modulo: 'PERFIL', accion: 'bitConsulta' },
      failures: {
        unexpected: successFalseAnswer(500, 'Ocurrió un error al consultar los perfiles.'),
      },
    },
    schema: {
      operationId: 'listPerfiles',
      summary: 'Listar los perfiles',
      querystring: PerfilFiltro,
      response: { 200: PageOf(Perfil) },
    },
    handler: async ({ sql, query }) => success(await listPerfiles(sql, query)),
  })

  app.get('/list', {
    config: {
      access: 'session',
      failures: {
        unexpected: statusCodeAnswer(500, 'Error al cargar lista de perfiles'),
      },
    },
    schema: {
      operationId: 'listTodosLosPerfiles',
      summary: 'Listar todos los perfiles, sin páginas',
      description: 'Necesita una sesión.',
      response: { 200: SuccessOf(Type.Array(PerfilBreve, { description: 'Todos los perfiles' })) },
    },
    handler: async ({ sql }) => success({ data: await listTodosLosPerfiles(sql) }),
  })

  app.post('/', {
    config: {
      access: { modulo: 'PERFIL', accion: 'bitAgregar' },
      failures: {
        unexpected: statusCodeAnswer(500, 'Ocurrió un error interno al crear el perfil'),
      },
    },
    schema: {
      operationId: 'createPerfil',
      summary: 'Crear un perfil',
      body: PerfilNuevo,
      response: { 200: SuccessOf(Perfil) },
    },
    handler: async ({ sql, caller, body }) => success(await insertPerfil(sql, body, caller)),
  })

  app.put('/:id', {
    config: {
      access: { modulo: 'PERFIL', accion: 'bitEditar' },
      failures: {
        notFound: statusCodeAnswer(404, 'Perfil no encontrado'),
        unexpected: statusCodeAnswer(500, 'Ocurrió un error interno al actualizar el perfil'),
      },
    },
    schema: {
      operationId: 'updatePerfil',
      summary: 'Editar un perfil',
      params: PerfilParams,
      body: PerfilEditado,
      response: { 200: SuccessOf(Perfil) },
    },
    handler: async ({ sql, caller, params, body }) => {
      const { data } = await updatePerfil(sql, params.id, body, caller)
      if (!data) throw new Failure('notFound')
      return success({ data })
    },
  })

  app.delete('/:id', {
    config: {
      access: { modulo: 'PERFIL', accion: 'bitEliminar' },
      failures: {
        conflict: statusCodeAnswer(409, 'El perfil está asignado a usuarios'),
      },
    },
    schema: {
      operationId: 'deletePerfil',
      summary: 'Eliminar un perfil con sus permisos',
      params: PerfilParams,
      response: { 200: ConfirmationOf(DELETED) },
    },
    handler: async ({ sql, caller, params }) => {
      await deletePerfil(sql, params.id, caller)
      return DELETED
    },
  })
}

export default perfilRoutes
