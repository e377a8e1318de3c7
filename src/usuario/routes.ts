import { Type } from '@sinclair/typebox'
import { statusFailure } from '../answers.js'
import { inTime } from '../db.js'
import { Respuesta } from '../schemas.js'
import type { RoutePlugin } from '../validation.js'
import { storeWithImagen } from './imagen.js'
import { checkUsuarioWrite, insertUsuario, updateUsuario } from './queries.js'
import { Usuario, UsuarioEditado, UsuarioNuevo, UsuarioParams } from './schemas.js'

const NO_ACTUALIZADO =
  'Error al actualizar: la imagen es demasiado grande o el servidor tardó demasiado.'
/** An upload may take 30 s of it, in milliseconds. */
const HANDLER_TIMEOUT = 45_000

const usuarioRoutes: RoutePlugin = async (app) => {
  const { sql, passwords, imagenes } = app

  app.route({
    method: 'POST',
    url: '/',
    config: {
      access: { modulo: 'USUARIO', accion: 'bitAgregar' },
      failures: {
        conflict: statusFailure(500),
        upload: statusFailure(500),
        tooLarge: statusFailure(500, 'La imagen es demasiado grande'),
        busy: statusFailure(503),
      },
    },
    handlerTimeout: HANDLER_TIMEOUT,
    schema: {
      summary: 'Crear un usuario',
      body: UsuarioNuevo,
      response: { 200: Respuesta(Usuario) },
    },
    handler: async (request) => {
      const { actor, log } = request
      const { imagenBase64, ...usuario } = request.body
      if (imagenBase64) await inTime(checkUsuarioWrite(sql, actor, null, usuario.idPerfil))
      const strPwd = await passwords.hash(usuario.strPwd)
      const data = await storeWithImagen(imagenes, imagenBase64, log, (imagenUrl) =>
        inTime(insertUsuario(sql, actor, { ...usuario, strPwd, imagenUrl })),
      )
      request.target = data.id
      return { success: true as const, data }
    },
  })

  app.route({
    method: 'PUT',
    url: '/:id',
    config: {
      access: { modulo: 'USUARIO', accion: 'bitEditar' },
      failures: {
        conflict: statusFailure(500),
        upload: statusFailure(500, NO_ACTUALIZADO),
        tooLarge: statusFailure(500, NO_ACTUALIZADO),
        unexpected: statusFailure(500, NO_ACTUALIZADO),
        busy: statusFailure(503),
      },
    },
    handlerTimeout: HANDLER_TIMEOUT,
    schema: {
      summary: 'Editar un usuario',
      description: 'Si ningún usuario tiene ese id, la respuesta no lleva data.',
      params: UsuarioParams,
      body: UsuarioEditado,
      response: { 200: Respuesta(Type.Optional(Usuario)) },
    },
    handler: async ({ actor, params, body: { imagenBase64, ...usuario }, log }) => {
      if (imagenBase64) await inTime(checkUsuarioWrite(sql, actor, params.id, usuario.idPerfil))
      const strPwd = usuario.strPwd && (await passwords.hash(usuario.strPwd))
      const data = await storeWithImagen(imagenes, imagenBase64, log, (imagenUrl) =>
        inTime(updateUsuario(sql, actor, params.id, { ...usuario, strPwd, imagenUrl })),
      )
      return { success: true as const, data }
    },
  })
}

export default usuarioRoutes
