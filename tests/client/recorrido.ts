import createClient from 'openapi-fetch'
// Made from the service's document: see tests/client.test.ts.
import type { components, paths } from './api.js'

type Schemas = components['schemas']

/** What the client makes of an answer: its data, or an Error with the service's text. */
function done<T>({ data, error }: { data?: T; error?: { message: string } }): T {
  if (error) throw new Error(error.message)
  return data as T
}

/** Logs in and uses all 24 operations, as a typed front end would; gives what it has seen. */
export async function recorrer(baseUrl: string, credentials: Schemas['Login']) {
  const api = createClient<paths>({ baseUrl })
  const { error } = await api.POST('/api/auth/login', { body: { ...credentials, strPwd: 'otra' } })
  const refusal = error?.statusCode === 401 ? hint(error.message) : undefined
  const { token, user } = done(await api.POST('/api/auth/login', { body: credentials }))
  api.use({
    onRequest({ request }) {
      request.headers.set('authorization', `Bearer ${token}`)
    },
  })

  const perfil = await perfiles()
  const modulo = await modulos()
  const permiso = await permisos(perfil.id, modulo.id)
  const usuario = await usuarios(perfil.id)
  await remove()
  const { message } = done(await api.POST('/api/auth/logout'))
  return { refusal, user, perfil, modulo, permiso, usuario, message }

  /** What a front end shows for a login that was refused, by the service's text. */
  function hint(
    message:
      | 'Usuario o contraseña incorrectos.'
      | 'El usuario no existe o su estado es the service.',
  ) {
    // @ts-expect-error: no text of this operation's 401
    if (message === 'Perfil no encontrado') return 'never'
    return message === 'Usuario o contraseña incorrectos.' ? 'wrong password' : 'no such user'
  }

  async function perfiles(): Promise<Schemas['Perfil']> {
    const body: Schemas['PerfilNuevo'] = { strNombrePerfil: 'Lectura', bitAdministrador: null }
    const { data: creado } = done(await api.POST('/api/perfil', { body }))
    const query = { page: 1, search: 'lectura', isAdmin: 'false' as const }
    const { data, totalPages } = done(await api.GET('/api/perfil', { params: { query } }))
    const breves: Schemas['PerfilBreve'][] = done(await api.GET('/api/perfil/list')).data
    const [perfil] = data
    if (!perfil || totalPages !== 1 || breves.length < 2) throw new Error('no such profile')
    const params = { path: { id: creado.id } }
    return done(await api.PUT('/api/perfil/{id}', { params, body: perfil })).data
  }

  async function modulos(): Promise<Schemas['Modulo']> {
    const creado = done(await api.POST('/api/modulo', { body: { strNombreModulo: 'Biblioteca' } }))
    // A failure whose status is 200.
    if (!creado.success) throw new Error(creado.message)
    const query = { search: 'biblioteca' }
    const [modulo] = done(await api.GET('/api/modulo', { params: { query } })).data
    const todos: Schemas['Modulo'][] = done(await api.GET('/api/modulo/list')).data
    if (!modulo || todos.length < 5) throw new Error('no such module')
    const params = { path: { id: modulo.id } }
    const renamed = done(await api.PUT('/api/modulo/{id}', { params, body: modulo }))
    if (!renamed.success || !renamed.data) throw new Error('not renamed')
    return renamed.data
  }

  async function permisos(idPerfil: number, idModulo: number): Promise<Schemas['Permiso']> {
    const body = { idPerfil, idModulo, bitConsulta: true, bitDetalle: null }
    done(await api.POST('/api/permisos', { body }))
    const { totalPages } = done(await api.GET('/api/permisos', { params: { query: { page: 1 } } }))
    const path = { idPerfil }
    const own = done(await api.GET('/api/permisos/por-perfil/{idPerfil}', { params: { path } }))
    const [permiso] = own.data
    if (!permiso || totalPages < 1) throw new Error('no such record')
    const params = { path: { id: permiso.id } }
    done(await api.PUT('/api/permisos/{id}', { params, body: permiso }))
    done(await api.POST('/api/permisos/guardar-matriz', { body: { idPerfil, permisos: own.data } }))
    const mapa = done(
      await api.GET('/api/permisos/mis-permisos/{idPerfil}', { params: { path } }),
    ).permisos
    const acciones: Schemas['PermisosAccion'] | undefined = mapa.BIBLIOTECA
    if (!acciones?.bitConsulta) throw new Error('not in the map')
    return permiso
  }

  async function usuarios(idPerfil: number): Promise<Schemas['UsuarioVisto']> {
    const body: Schemas['UsuarioNuevo'] = {
      strNombreUsuario: 'lectora',
      strPwd: 'una clave larga',
      strCorreo: 'lectora@ejemplo.com',
      idPerfil,
      strNumeroCelular: null,
    }
    const { id } = done(await api.POST('/api/usuario', { body })).data
    const params = { path: { id } }
    const { data: usuario } = done(await api.GET('/api/usuario/{id}', { params }))
    done(await api.PUT('/api/usuario/{id}', { params, body: usuario }))
    const query = { idPerfil, estado: 'true' as const }
    const [listed] = done(await api.GET('/api/usuario', { params: { query } })).data
    if (!listed) throw new Error('no such user')
    return listed
  }

  async function remove() {
    const { data } = done(
      await api.GET('/api/permisos/por-perfil/{idPerfil}', {
        params: { path: { idPerfil: perfil.id } },
      }),
    )
    for (const { id } of data) await api.DELETE('/api/permisos/{id}', { params: { path: { id } } })
    done(await api.DELETE('/api/usuario/{id}', { params: { path: { id: usuario.id } } }))
    done(await api.DELETE('/api/perfil/{id}', { params: { path: { id: perfil.id } } }))
    const removed = done(
      await api.DELETE('/api/modulo/{id}', { params: { path: { id: modulo.id } } }),
    )
    if (!removed.success) throw new Error(removed.message)
  }
}
