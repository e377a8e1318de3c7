import { Type } from '@sinclair/typebox'
import { shareStatement } from '../database/shared.js'
import { DELETED, Deleted, Page, Success, success } from '../http/envelopes.js'
import { Failure, statusFailure, successFailure } from '../http/failures.js'
import type { RoutePlugin } from '../http/validation.js'
import {
  deletePerfil,
  insertPerfil,
  listPerfiles,
  listPerfilesBreves,
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

const perfilRoutes: RoutePlugin = async (app) => {
  const { sql } = app
  const listBreves = shareStatement(() => listPerfilesBreves(sql), 1)

  app.get('/', {
    config: {
      access: { modulo: 'PERFIL', accion: 'bitConsulta' },
      failures: { unexpected: successFailure(500, 'Ocurrió un error al consultar los perfiles.') },
    },
    schema: {
      operationId: 'listPerfiles',
      summary: 'Listar los perfiles',
      querystring: PerfilFiltro,
      response: { 200: Page(Perfil) },
    },
    handler: async ({ query }) => ({ success: true as const, ...(await listPerfiles(sql, query)) }),
  })

  app.get('/list', {
    config: {
      access: 'session',
      failures: { unexpected: statusFailure(500, 'Error al cargar lista de perfiles') },
    },
    schema: {
      operationId: 'listTodosLosPerfiles',
      summary: 'Listar todos los perfiles, sin páginas',
      response: { 200: Success(Type.Array(PerfilBreve, { description: 'Todos los perfiles' })) },
    },
    handler: async () => success(await listBreves()),
  })

  app.post('/', {
    config: {
      access: { modulo: 'PERFIL', accion: 'bitAgregar' },
      failures: { unexpected: statusFailure(500, 'Ocurrió un error interno al crear el perfil') },
    },
    schema: {
      operationId: 'createPerfil',
      summary: 'Crear un perfil',
      body: PerfilNuevo,
      response: { 200: Success(Perfil) },
    },
    handler: async (request) => {
      const data = await insertPerfil(sql, request.actor, request.body)
      request.target = data.id
      return success(data)
    },
  })

  app.put('/:id', {
    config: {
      access: { modulo: 'PERFIL', accion: 'bitEditar' },
      failures: {
        notFound: statusFailure(404, 'Perfil no encontrado'),
        unexpected: statusFailure(500, 'Ocurrió un error interno al actualizar el perfil'),
      },
    },
    schema: {
      operationId: 'updatePerfil',
      summary: 'Editar un perfil',
      params: PerfilParams,
      body: PerfilEditado,
      response: { 200: Success(Perfil) },
    },
    handler: async ({ actor, params, body }) => {
      const data = await updatePerfil(sql, actor, params.id, body)
      if (!data) throw new Failure('notFound')
      return success(data)
    },
  })

  app.delete('/:id', {
    config: {
      access: { modulo: 'PERFIL', accion: 'bitEliminar' },
      failures: { conflict: statusFailure(409, 'El perfil está asignado a usuarios') },
    },
    schema: {
      operationId: 'deletePerfil',
      summary: 'Eliminar un perfil con sus permisos',
      params: PerfilParams,
      response: { 200: Deleted },
    },
    handler: async ({ actor, params }) => {
      await deletePerfil(sql, actor, params.id)
      return DELETED
    },
  })
}

export default perfilRoutes
