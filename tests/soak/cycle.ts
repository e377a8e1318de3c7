import { strict as assert } from 'node:assert'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { PASSWORD } from '../bench/data.js'

/** An image of that many bytes, as a data URI. */
const image = (bytes: number) =>
  `data:image/png;base64,${Buffer.alloc(bytes, 'imagen').toString('base64')}`
const SMALL_IMAGE = image(60_000)
const LARGE_IMAGE = image(2_000_000)

/**
 * One round of everything that an administrator does, with names of its own, and of what is to be
 * refused; leaves the database as it was. Throws at the first answer that is not the right one.
 * Gives the number of requests.
 */
export async function cycle(url: string, administrador: string, name: string) {
  let requests = 0

  /** The answer's body; its status has to be `status`. */
  async function call(method: string, path: string, body?: unknown, token = '', status = 200) {
    requests += 1
    const answer = await fetch(url + path, {
      method,
      headers: { cookie: `auth_token=${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const answered = (await answer.json()) as any
    assert.equal(answer.status, status, `${method} ${path}: ${JSON.stringify(answered)}`)
    return answered
  }

  const login = (nombre: string, strPwd: string, status = 200) =>
    call(
      'POST',
      '/api/auth/login',
      { strNombreUsuario: nombre, strPwd, captchaToken: 'humano' },
      '',
      status,
    )

  const { token } = await login(administrador, PASSWORD)
  const create = async (path: string, body: object): Promise<number> =>
    (await call('POST', path, body, token)).data.id

  const idModulo = await create('/api/modulo', { strNombreModulo: name })
  const perfil = { strNombrePerfil: name, bitAdministrador: false }
  const idPerfil = await create('/api/perfil', perfil)
  const permiso = { idPerfil, idModulo, bitConsulta: true }
  const idPermiso = await create('/api/permisos', permiso)
  await call('POST', '/api/permisos', permiso, token, 409)
  await call('PUT', `/api/permisos/${idPermiso}`, { ...permiso, bitEditar: true }, token)
  await call('DELETE', `/api/permisos/${idPermiso}`, undefined, token)
  await call('POST', '/api/permisos/guardar-matriz', { idPerfil, permisos: [permiso] }, token)
  await call('PUT', `/api/perfil/${idPerfil}`, { ...perfil, bitAdministrador: true }, token)
  await call('PUT', `/api/perfil/${idPerfil}`, perfil, token)

  const usuario = {
    strNombreUsuario: name,
    idPerfil,
    strPwd: 'una clave',
    strCorreo: `${name}@ejemplo.com`,
    idEstadoUsuario: true,
  }
  const idUsuario = await create('/api/usuario', { ...usuario, imagenBase64: SMALL_IMAGE })
  await call('PUT', `/api/usuario/${idUsuario}`, { ...usuario, imagenBase64: LARGE_IMAGE }, token)
  await login(name, 'otra clave', 401)
  const own = (await login(name, 'una clave')).token
  await call('GET', '/api/usuario', undefined, own, 403)
  await call('POST', '/api/auth/logout', undefined, own)
  await call('GET', `/api/permisos/mis-permisos/${idPerfil}`, undefined, own, 401)

  await call('PUT', '/api/perfil/x', perfil, token, 400)
  await call('POST', '/api/modulo', '{"strNombre', token, 400)
  await call('GET', '/api/nada', undefined, token, 404)
  assert.match(await sendGarbage(url), /^HTTP\/1\.1 400 /)

  await call('DELETE', `/api/usuario/${idUsuario}`, undefined, token)
  await call('DELETE', `/api/perfil/${idPerfil}`, undefined, token)
  await call('DELETE', `/api/modulo/${idModulo}`, undefined, token)
  return requests
}

/** What is no HTTP at all; gives the answer. */
async function sendGarbage(url: string) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write('\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n')
  return text(socket)
}
