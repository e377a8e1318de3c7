import createClient from 'openapi-fetch'
// tests/faults/generated.test.ts generates this module from the service's document.
import type { components, paths } from './api.js'

type Schemas = components['schemas']
type LoginRefusal =
  | 'Usuario o contraseña incorrectos.'
  | 'El usuario no existe o su estado es the service.'

/** Returns an answer's data, or throws an Error with the service's message. */
function done<T>({ data, error }: { data?: T; error?: { message: string } }): T {
  if (error) throw new Error(error.message)
  return data as T
}

/** Returns the first item of a list, or throws an Error if the list is empty. */
function first<T>([item]: T[]): T {
  if (!item) throw new Error('the list is empty')
  return item
}

/** Logs in and calls all operations as a typed front end would; returns what it has received. */
export async function recorrer(baseUrl: string, credentials: Schemas['Login']) {
  const api = createClient<paths>({ baseUrl })
  const { error } = await api.POST('/api/auth/login', { body: { ...credentials, strPwd: 'otra' } })
  const refusal: LoginRefusal | undefined = error?.statusCode === 401 ? error.message : undefined
  // @ts-expect-error: this operation's 401 does not have this text
  if (error?.statusCode === 401 && error.message === 'Perfil no encontrado') throw error
  const { token, user } = done(await api.POST('/api/auth/login', { body: credentials }))
  let session = token
  api.use({
    onRequest: ({ request }) => request.headers.set('authorization', `Bearer ${session}`),
  })

  // A profile is created, found and listed, and sent back unchanged.
  const nuevo: Schemas['PerfilNuevo'] = { strNombrePerfil: 'Lectura', bitAdministrador: null }
  done(await api.POST('/api/perfil', { body: nuevo }))
  const buscado = { page: 1, search: 'lectura', isAdmin: 'false' as const }
  const found = first(done(await api.GET('/api/perfil', { params: { query: buscado } })).data)
  first<Schemas['PerfilBreve']>(done(await api.GET('/api/perfil/list')).data)
  const perfilParams = { params: { path: { id: found.id } } }
  const perfil = done(await api.PUT('/api/perfil/{id}', { ...perfilParams, body: found })).data

  // Modules have failures with status 200.
  const creado = done(await api.POST('/api/modulo', { body: { strNombreModulo: 'Biblioteca' } }))
  if (!creado.success) throw new Error(creado.message)
  const query = { search: 'biblioteca' }
  const modulo = first(done(await api.GET('/api/modulo', { params: { query } })).data)
  first<Schemas['Modulo']>(done(await api.GET('/api/modulo/list')).data)
  const moduloParams = { params: { path: { id: modulo.id } } }
  const renamed = done(await api.PUT('/api/modulo/{id}', { ...moduloParams, body: modulo }))
  if (!renamed.success) throw new Error(renamed.message)

  // Permission records are written one by one and as a matrix.
  const idPerfil = perfil.id
  const record = { idPerfil, idModulo: modulo.id, bitConsulta: true, bitDetalle: null }
  done(await api.POST('/api/permisos', { body: record }))
  first(done(await api.GET('/api/permisos', { params: { query: { page: 1 } } })).data)
  const ofPerfil = { params: { path: { idPerfil } } }
  const own = done(await api.GET('/api/permisos/por-perfil/{idPerfil}', ofPerfil)).data
  const permiso = first(own)
  const permisoParams = { params: { path: { id: permiso.id } } }
  done(await api.PUT('/api/permisos/{id}', { ...permisoParams, body: permiso }))
  done(await api.DELETE('/api/permisos/{id}', permisoParams))
  done(await api.POST('/api/permisos/guardar-matriz', { body: { idPerfil, permisos: own } }))
  const mapa = done(await api.GET('/api/permisos/mis-permisos/{idPerfil}', ofPerfil)).permisos
  const acciones: Schemas['PermisosAccion'] | undefined = mapa.BIBLIOTECA

  // Users are sent back unchanged.
  const persona: Schemas['UsuarioNuevo'] = {
    strNombreUsuario: 'lectora',
    strPwd: 'una clave larga',
    strCorreo: 'lectora@ejemplo.com',
    idPerfil,
    strNumeroCelular: null,
  }
  const { id } = done(await api.POST('/api/usuario', { body: persona })).data
  const usuarioParams = { params: { path: { id } } }
  const { data: usuario } = done(await api.GET('/api/usuario/{id}', usuarioParams))
  done(await api.PUT('/api/usuario/{id}', { ...usuarioParams, body: usuario }))
  const activos = { idPerfil, estado: 'true' as const }
  const listed = first(done(await api.GET('/api/usuario', { params: { query: activos } })).data)

  // The audit has these writes.
  const filtro = { entidad: 'usuario' as const, id }
  const filas = done(await api.GET('/api/auditoria', { params: { query: filtro } })).data
  first<Schemas['FilaDeAuditoria']>(filas)
  const permission = { idUsuario: id, modulo: 'BIBLIOTECA', accion: 'bitConsulta' as const }
  first(done(await api.GET('/api/auditoria/origen', { params: { query: permission } })).data)

  done(await api.DELETE('/api/usuario/{id}', usuarioParams))
  done(await api.DELETE('/api/perfil/{id}', perfilParams))
  const removed = done(await api.DELETE('/api/modulo/{id}', moduloParams))
  if (!removed.success) throw new Error(removed.message)

  const passwords = { strPwd: credentials.strPwd, strPwdNueva: 'otra clave larga' }
  session = done(await api.PUT('/api/auth/password', { body: passwords })).token
  const { message } = done(await api.POST('/api/auth/logout'))
  return { refusal, user, perfil, modulo, permiso, acciones, usuario: listed, message }
}
