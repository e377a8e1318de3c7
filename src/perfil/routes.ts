import { Type } from '@sinclair/typebox'
import { statusFailure, successFailure } from '../answers.js'
import { Failure } from '../failure.js'
import { Pagina, Respuesta } from '../schemas.js'
import type { RoutePlugin } from '../validation.js'
import { listPerfiles, listPerfilesBreves, updatePerfil } from './queries.js'
import { Perfil, PerfilBreve, PerfilEditado, PerfilFiltro, PerfilParams } from './schemas.js'

const perfilRoutes: RoutePlugin = async (app) => {
  const { sql } = app

  app.route({
    method: 'GET',
    url: '/',
    config: {
      access: { modulo: 'PERFIL', accion: 'bitConsulta' },
      failures: { unexpected: successFailure(500, 'Ocurrió un error al consultar los perfiles.') },
    },
    schema: {
      summary: 'Listar los perfiles',
      querystring: PerfilFiltro,
      response: { 200: Pagina(Perfil) },
    },
    handler: async ({ query }) => ({
      success: true as const,
      ...(await listPerfiles(sql, query)),
    }),
  })

  app.route({
    method: 'GET',
    url: '/list',
    config: {
      access: 'session',
      failures: { unexpected: statusFailure(500, 'Error al cargar lista de perfiles') },
    },
    schema: {
      summary: 'Listar todos los perfiles, sin páginas',
      response: { 200: Respuesta(Type.Array(PerfilBreve)) },
    },
    handler: async () => ({ success: true as const, data: await listPerfilesBreves(sql) }),
  })

  app.route({
    method: 'PUT',
    url: '/:id',
    config: {
      access: { modulo: 'PERFIL', accion: 'bitEditar' },
      failures: {
        notFound: statusFailure(404),
        unexpected: statusFailure(500, 'Ocurrió un error interno al actualizar el perfil'),
      },
    },
    schema: {
      summary: 'Editar un perfil',
      params: PerfilParams,
      body: PerfilEditado,
      response: { 200: Respuesta(Perfil) },
    },
    handler: async ({ actor, params, body }) => {
      const data = await updatePerfil(sql, actor, params.id, body)
      if (!data) throw new Failure('notFound', 'Perfil no encontrado')
      return { success: true as const, data }
    },
  })
}

export default perfilRoutes
