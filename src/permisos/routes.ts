import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { Sql } from '../database/sql.js'
import { ConfirmationOf, DELETED, PageOf, SuccessOf, success } from '../http/answers/envelopes.js'
import { Failure, JSON_TYPE, statusCodeAnswer } from '../http/answers/failures.js'
import { PageNumber, UNKNOWN_ID } from '../http/input/fields.js'
import { cacheMapas } from './mapa.js'
import {
  deletePermiso,
  findMapa,
  insertPermiso,
  listPermisos,
  listPermisosPorPerfil,
  replacePermisos,
  updatePermiso,
} from './queries.js'
import {
  IdPerfilParams,
  MATRIZ_BODY_LIMIT,
  MAX_ENTRADAS,
  MapaDePermisos,
  Matriz,
  MatrizHeaders,
  Permiso,
  PermisoConNombres,
  PermisoEnviado,
  PermisoParams,
  SinCambios,
} from './schemas.js'

const UNKNOWN_PERFIL_OR_MODULO = 'El perfil o el módulo no existe'
const TAKEN_MODULO = 'El perfil ya tiene permisos sobre ese módulo'
const NO_GUARDADO = 'Error al guardar en base de datos'
const CHANGED_PERMISOS = 'Los permisos han cambiado. Vuelva a cargarlos.'
const SAVED = { success: true, message: 'Matriz actualizada correctamente' } as const

const permisosRoutes: FastifyPluginAsyncTypebox<{ pool: Sql }> = async (app, { pool }) => {
  const findOwnMapa = cacheMapas(pool)

  app.get('/', {
    config: {
      access: { modulo: 'PERMISOS', accion: 'bitConsulta' },
      failures: {
        unexpected: statusCodeAnswer(500, 'Error al consultar permisos'),
      },
    },
    schema: {
      operationId: 'listPermisos',
      summary: 'Listar los permisos de todos los perfiles',
      querystring: Type.Object({ page: PageNumber }),
      response: { 200: PageOf(PermisoConNombres) },
    },
    handler: async ({ sql, query }) => success(await listPermisos(sql, query.page)),
  })

  app.post('/', {
    config: {
      access: { modulo: 'PERMISOS', accion: 'bitAgregar' },
      failures: {
        invalid: statusCodeAnswer(400, UNKNOWN_PERFIL_OR_MODULO),
        conflict: statusCodeAnswer(409, TAKEN_MODULO),
      },
    },
    schema: {
      operationId: 'createPermiso',
      summary: 'Crear un permiso',
      body: PermisoEnviado,
      response: { 200: SuccessOf(Permiso) },
    },
    handler: async ({ sql, caller, body }) => success(await insertPermiso(sql, body, caller)),
  })

  app.put('/:id', {
    config: {
      access: { modulo: 'PERMISOS', accion: 'bitEditar' },
      failures: {
        invalid: statusCodeAnswer(400, UNKNOWN_PERFIL_OR_MODULO),
        notFound: statusCodeAnswer(404, 'Permiso no encontrado'),
        conflict: statusCodeAnswer(409, TAKEN_MODULO),
      },
    },
    schema: {
      operationId: 'updatePermiso',
      summary: 'Sustituir un permiso',
      params: PermisoParams,
      body: PermisoEnviado,
      response: { 200: SuccessOf(Permiso) },
    },
    handler: async ({ sql, caller, params, body }) => {
      const { data } = await updatePermiso(sql, params.id, body, caller)
      if (!data) throw new Failure('notFound')
      return success({ data })
    },
  })

  app.delete('/:id', {
    config: { access: { modulo: 'PERMISOS', accion: 'bitEliminar' } },
    schema: {
      operationId: 'deletePermiso',
      summary: 'Eliminar un permiso',
      params: PermisoParams,
      response: { 200: ConfirmationOf(DELETED) },
    },
    handler: async ({ sql, caller, params }) => {
      await deletePermiso(sql, params.id, caller)
      return DELETED
    },
  })

  app.get('/mis-permisos/:idPerfil', {
    config: {
      access: { modulo: 'PERMISOS', accion: 'bitConsulta' },
      unlessOwn: 'idPerfil',
      etag: true,
      failures: {
        unexpected: statusCodeAnswer(500, 'Error al cargar los permisos del usuario'),
      },
    },
    schema: {
      operationId: 'getMisPermisos',
      summary: 'Consultar el mapa de permisos de un perfil',
      params: IdPerfilParams,
      // The handler sends a body that is already serialized.
      response: { 200: Type.Unsafe<Buffer>(MapaDePermisos), 304: SinCambios },
    },
    handler: async ({ sql, params, headers, sesion }, reply) => {
      const isOwn = params.idPerfil === sesion.idPerfil
      const { version, body } = isOwn
        ? await findOwnMapa(sesion)
        : await findMapa(sql, params.idPerfil)
      reply.header('cache-control', 'private, no-cache')
      if (version !== null) {
        const etag = etagOf(version)
        reply.header('etag', etag)
        // The header may contain several ETags. A proxy that compresses answers may have turned
        // this one into a weak one, W/"…".
        const isCurrent = headers['if-none-match']?.includes(etag)
        if (isCurrent) return reply.code(304).send(undefined)
      }
      return reply.type(JSON_TYPE).send(body)
    },
  })

  app.get('/por-perfil/:idPerfil', {
    config: {
      access: { modulo: 'PERMISOS', accion: 'bitConsulta' },
      etag: true,
      failures: {
        unexpected: statusCodeAnswer(500, 'Error al cargar permisos'),
      },
    },
    schema: {
      operationId: 'listPermisosPorPerfil',
      summary: 'Listar los permisos de un perfil',
      params: IdPerfilParams,
      response: { 200: SuccessOf(Type.Array(Permiso, { description: 'Los permisos del perfil' })) },
    },
    handler: async ({ sql, params }, reply) => {
      const { version, permisos } = await listPermisosPorPerfil(sql, params.idPerfil)
      if (version !== null) reply.header('etag', etagOf(version))
      return success({ data: permisos })
    },
  })

  app.post('/guardar-matriz', {
    bodyLimit: MATRIZ_BODY_LIMIT,
    config: {
      access: { modulo: 'PERMISOS', accion: 'bitEditar' },
      etag: true,
      failures: {
        changed: statusCodeAnswer(412, CHANGED_PERMISOS),
        conflict: statusCodeAnswer(500, NO_GUARDADO),
        unexpected: statusCodeAnswer(500, NO_GUARDADO),
      },
    },
    schema: {
      operationId: 'guardarMatriz',
      summary: 'Sustituir todos los permisos de un perfil',
      description: 'Con If-Match, solo si los permisos tienen todavía esa versión.',
      headers: MatrizHeaders,
      body: Matriz,
      response: { 200: ConfirmationOf(SAVED) },
    },
    handler: async ({ sql, caller, body, headers }, reply) => {
      const { idPerfil, permisos = [] } = body
      // A matrix that is too long or names a module twice is refused before the write is sent to
      // the database. All unknown ids become UNKNOWN_ID, so they do not count as repeated. The
      // database refuses them as unknown modules.
      const modulos = permisos.map(({ idModulo }) => idModulo).filter((id) => id !== UNKNOWN_ID)
      const hasDuplicates = new Set(modulos).size < modulos.length
      if (hasDuplicates || permisos.length > MAX_ENTRADAS) throw new Failure('conflict')

      const ifMatch = headers['if-match'] ?? null
      const { version } = await replacePermisos(sql, idPerfil, permisos, ifMatch, caller)
      if (version !== null) reply.header('etag', etagOf(version))
      return SAVED
    },
  })
}

/** Returns the ETag for a version of a profile's records. */
const etagOf = (version: string) => `"${version}"`

export default permisosRoutes
