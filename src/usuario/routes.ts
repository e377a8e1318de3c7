import { Type } from '@sinclair/typebox'
import { forbidden } from '../auth/actor.js'
import { shareEqual, shareLookups } from '../database/shared.js'
import { DELETED, Deleted, Page, Success, success } from '../http/envelopes.js'
import { Failure, statusFailure, successFailure } from '../http/failures.js'
import type { RoutePlugin } from '../http/validation.js'
import { storeWithImagen } from './imagen.js'
import {
  CONFLICTOS,
  checkUsuarioWrite,
  deleteUsuario,
  findUsuarios,
  insertUsuario,
  listUsuarios,
  type UsuarioLookup,
  updateUsuario,
} from './queries.js'
import {
  Usuario,
  UsuarioEditado,
  UsuarioFiltro,
  UsuarioNuevo,
  UsuarioParams,
  UsuarioVisto,
} from './schemas.js'

const NO_ACTUALIZADO =
  'Error al actualizar: la imagen es demasiado grande o el servidor tardó demasiado.'

const usuarioRoutes: RoutePlugin<{ imageLimit: number }> = async (app, { imageLimit }) => {
  const { sql, passwords, imagenes } = app
  const findUsuario = shareLookups((lookups: UsuarioLookup[]) => findUsuarios(sql, lookups), 2)
  const listPage = shareEqual((filtro: UsuarioFiltro) => listUsuarios(sql, filtro))

  app.get('/', {
    config: {
      access: { modulo: 'USUARIO', accion: 'bitConsulta' },
      failures: { unexpected: successFailure(500, 'Ocurrió un error al consultar los usuarios.') },
    },
    schema: {
      operationId: 'listUsuarios',
      summary: 'Listar los usuarios',
      querystring: UsuarioFiltro,
      response: { 200: Page(UsuarioVisto) },
    },
    handler: async ({ query }) => ({ success: true as const, ...(await listPage(query)) }),
  })

  app.get('/:id', {
    config: {
      access: { modulo: 'USUARIO', accion: 'bitDetalle', unlessOwn: 'usuario' },
      failures: { notFound: statusFailure(404, 'Usuario no encontrado') },
    },
    schema: {
      operationId: 'getUsuario',
      summary: 'Consultar un usuario',
      params: UsuarioParams,
      response: { 200: Success(UsuarioVisto) },
    },
    handler: async ({ actor, sesion, params: { id } }) => {
      const isLimited = actor.enforced && !sesion?.administrador && actor.id !== id
      const data = await findUsuario({ id, limite: isLimited ? (sesion?.idPerfil ?? null) : null })
      if (!data) throw new Failure('notFound')
      if (!data.alcanzable) throw forbidden()
      return success(data)
    },
  })

  app.post('/', {
    bodyLimit: imageLimit,
    config: {
      access: { modulo: 'USUARIO', accion: 'bitAgregar' },
      failures: {
        conflict: statusFailure(500, CONFLICTOS),
        upload: statusFailure(500, 'No se pudo subir la imagen'),
        tooLarge: statusFailure(500, 'La imagen es demasiado grande'),
      },
    },
    schema: {
      operationId: 'createUsuario',
      summary: 'Crear un usuario',
      body: UsuarioNuevo,
      response: { 200: Success(Usuario) },
    },
    handler: async (request) => {
      const { actor, log } = request
      const { imagenBase64, ...usuario } = request.body
      await checkUsuarioWrite(sql, actor, null, usuario.idPerfil)
      const strPwd = await passwords.hash(usuario.strPwd)
      const data = await storeWithImagen(imagenes, imagenBase64, log, (imagen) =>
        insertUsuario(sql, actor, { ...usuario, strPwd, imagen }),
      )
      request.target = data.id
      return success(data)
    },
  })

  app.put('/:id', {
    bodyLimit: imageLimit,
    config: {
      access: { modulo: 'USUARIO', accion: 'bitEditar' },
      failures: {
        conflict: statusFailure(500, CONFLICTOS),
        upload: statusFailure(500, NO_ACTUALIZADO),
        tooLarge: statusFailure(500, NO_ACTUALIZADO),
        unexpected: statusFailure(500, NO_ACTUALIZADO),
      },
    },
    schema: {
      operationId: 'updateUsuario',
      summary: 'Editar un usuario',
      description: 'Si ningún usuario tiene ese id, la respuesta no lleva data.',
      params: UsuarioParams,
      body: UsuarioEditado,
      response: { 200: Success(Type.Optional(Usuario)) },
    },
    handler: async ({ actor, params, body, log }) => {
      const { imagenBase64, ...usuario } = body
      if (usuario.strPwd || imagenBase64) {
        await checkUsuarioWrite(sql, actor, params.id, usuario.idPerfil)
      }
      const strPwd = usuario.strPwd && (await passwords.hash(usuario.strPwd))
      const updated = await storeWithImagen(imagenes, imagenBase64, log, (imagen) =>
        updateUsuario(sql, actor, params.id, { ...usuario, strPwd, imagen }),
      )
      if (updated?.reemplazada) void imagenes.remove(updated.reemplazada, log)
      return success(updated?.usuario)
    },
  })

  app.delete('/:id', {
    config: {
      access: { modulo: 'USUARIO', accion: 'bitEliminar' },
      failures: { conflict: statusFailure(409, 'No puede eliminar su propio usuario') },
    },
    schema: {
      operationId: 'deleteUsuario',
      summary: 'Eliminar un usuario con su imagen',
      params: UsuarioParams,
      response: { 200: Deleted },
    },
    handler: async (request) => {
      const { id } = request.params
      if (id === request.actor.id) throw new Failure('conflict')
      const publicId = await deleteUsuario(sql, request.actor, id)
      if (publicId) void imagenes.remove(publicId, request.log)
      return DELETED
    },
  })
}

export default usuarioRoutes
