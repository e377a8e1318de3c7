import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { Passwords } from '../access/password.js'
import { forbidden } from '../access/refusal.js'
import type { Config } from '../config.js'
import { ConfirmationOf, DELETED, PageOf, SuccessOf, success } from '../http/answers/envelopes.js'
import { Failure, statusCodeAnswer, successFalseAnswer } from '../http/answers/failures.js'
import { type ImagenAlojada, imageHost } from './imagen.js'
import {
  CONFLICT_MESSAGES,
  checkUsuarioWrite,
  deleteUsuario,
  findUsuario,
  insertUsuario,
  listUsuarios,
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

interface Options {
  passwords: Passwords
  config: Config
  /** The largest body that may contain an image, in bytes. */
  imageLimit: number
}

const usuarioRoutes: FastifyPluginAsyncTypebox<Options> = async (app, options) => {
  const { passwords, config, imageLimit } = options
  const imagenes = imageHost(config)

  app.get('/', {
    config: {
      access: { modulo: 'USUARIO', accion: 'bitConsulta' },
      failures: {
        unexpected: successFalseAnswer(500, 'Ocurrió un error al consultar los usuarios.'),
      },
    },
    schema: {
      operationId: 'listUsuarios',
      summary: 'Listar los usuarios',
      querystring: UsuarioFiltro,
      response: { 200: PageOf(UsuarioVisto) },
    },
    handler: async ({ sql, query }) => success(await listUsuarios(sql, query)),
  })

  app.get('/:id', {
    config: {
      access: { modulo: 'USUARIO', accion: 'bitDetalle' },
      unlessOwn: 'id',
      failures: {
        notFound: statusCodeAnswer(404, 'Usuario no encontrado'),
      },
    },
    schema: {
      operationId: 'getUsuario',
      summary: 'Consultar un usuario',
      params: UsuarioParams,
      response: { 200: SuccessOf(UsuarioVisto) },
    },
    handler: async ({ sql, sesion, caller, params: { id } }) => {
      const isLimited = caller.enforced && !sesion.administrador && caller.id !== id
      const limite = isLimited ? sesion.idPerfil : null
      const data = await findUsuario(sql, id, limite)
      if (!data) throw new Failure('notFound')
      if (data.needs) throw forbidden(data.needs)
      return success({ data })
    },
  })

  app.post('/', {
    bodyLimit: imageLimit,
    config: {
      access: { modulo: 'USUARIO', accion: 'bitAgregar' },
      failures: {
        conflict: statusCodeAnswer(500, ...CONFLICT_MESSAGES),
        upload: statusCodeAnswer(500, 'No se pudo subir la imagen'),
        tooLarge: statusCodeAnswer(500, 'La imagen es demasiado grande'),
      },
    },
    schema: {
      operationId: 'createUsuario',
      summary: 'Crear un usuario',
      body: UsuarioNuevo,
      response: { 200: SuccessOf(Usuario) },
    },
    handler: async ({ sql, caller, body, log }) => {
      const { imagenBase64, ...usuario } = body
      await checkUsuarioWrite(sql, null, usuario.idPerfil, caller)
      const strPwd = await passwords.hash(usuario.strPwd, caller.id)
      const insert = (imagen?: ImagenAlojada) =>
        insertUsuario(sql, { ...usuario, strPwd, ...imagen }, caller)
      return success(await imagenes.uploadAndWrite(imagenBase64, log, insert))
    },
  })

  app.put('/:id', {
    bodyLimit: imageLimit,
    config: {
      access: { modulo: 'USUARIO', accion: 'bitEditar' },
      failures: {
        conflict: statusCodeAnswer(500, ...CONFLICT_MESSAGES),
        upload: statusCodeAnswer(500, NO_ACTUALIZADO),
        tooLarge: statusCodeAnswer(500, NO_ACTUALIZADO),
        unexpected: statusCodeAnswer(500, NO_ACTUALIZADO),
      },
    },
    schema: {
      operationId: 'updateUsuario',
      summary: 'Editar un usuario',
      description: 'Si ningún usuario tiene ese id, la respuesta no lleva data.',
      params: UsuarioParams,
      body: UsuarioEditado,
      response: { 200: SuccessOf(Type.Optional(Usuario)) },
    },
    handler: async ({ sql, caller, params, body, log }) => {
      const { imagenBase64, ...usuario } = body
      if (usuario.strPwd || imagenBase64) {
        await checkUsuarioWrite(sql, params.id, usuario.idPerfil, caller)
      }
      const strPwd = usuario.strPwd && (await passwords.hash(usuario.strPwd, caller.id))
      const update = (imagen?: ImagenAlojada) =>
        updateUsuario(sql, params.id, { ...usuario, strPwd, ...imagen }, caller)
      const { data, imagenAnterior } = await imagenes.uploadAndWrite(imagenBase64, log, update)
      if (imagenAnterior) void imagenes.remove(imagenAnterior, log)
      return success({ data: data ?? undefined })
    },
  })

  app.delete('/:id', {
    config: {
      access: { modulo: 'USUARIO', accion: 'bitEliminar' },
      failures: {
        conflict: statusCodeAnswer(409, 'No puede eliminar su propio usuario'),
      },
    },
    schema: {
      operationId: 'deleteUsuario',
      summary: 'Eliminar un usuario con su imagen',
      params: UsuarioParams,
      response: { 200: ConfirmationOf(DELETED) },
    },
    handler: async ({ sql, caller, params, log }) => {
      if (params.id === caller.id) throw new Failure('conflict')
      const { imagenAnterior } = await deleteUsuario(sql, params.id, caller)
      if (imagenAnterior) void imagenes.remove(imagenAnterior, log)
      return DELETED
    },
  })
}

export default usuarioRoutes
