import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { startPasswords } from '../src/access/password.js'
import { statusCodeAnswer, UNAUTHENTICATED, withoutHeaders } from './answers.js'
import { testApp } from './app.js'
import { usuario } from './endpoints.js'
import { type Step, sendDuring } from './hold.js'

const { app, config, sql, call, login } = await testApp()
const DATABASE_URL = config.DATABASE_URL.url
const WRONG = statusCodeAnswer(401, 'Usuario o contraseña incorrectos.')
const invalid = (message: string) => statusCodeAnswer(400, message)

const { data: perfil } = (await call('POST', '/api/perfil', { strNombrePerfil: 'Nada' })).body

let turn = 0
/**
 * Adds a user with the password `una clave` and without permissions; returns the user's id, name
 * and token.
 */
async function addUser() {
  turn += 1
  const nombre = `persona${turn}`
  const { body } = await call('POST', '/api/usuario', usuario(nombre, { idPerfil: perfil.id }))
  return { id: body.data.id as number, nombre, token: await login(nombre, 'una clave') }
}

const change = (token: string, body: object) => call('PUT', '/api/auth/password', body, { token })

/** Changes a password, and calls `meanwhile` when the service has looked up the session. */
function changeDuring(token: string, strPwd: string, meanwhile: () => Promise<unknown>) {
  // The service reads the body after the look-up.
  async function* body() {
    yield `{"strPwd":"${strPwd}",`
    await meanwhile()
    yield '"strPwdNueva":"otra clave"}'
  }
  return app.inject({
    method: 'PUT',
    url: '/api/auth/password',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    payload: Readable.from(body()),
  })
}

const use = async (token: string) =>
  (await call('GET', '/api/perfil/list', undefined, { token })).status

describe('PUT /api/auth/password', () => {
  it('ends all sessions of the user, and its token begins the only one', async () => {
    const { id, nombre, token } = await addUser()
    const elsewhere = await login(nombre, 'una clave')
    const { status, body } = await change(token, { strPwd: 'una clave', strPwdNueva: 'otra clave' })
    expect({ status, body }).toEqual({
      status: 200,
      body: { success: true, token: expect.any(String) },
    })
    expect([await use(token), await use(elsewhere), await use(body.token)]).toEqual([401, 401, 200])
    expect(await login(nombre, 'otra clave')).toEqual(expect.any(String))
    const [row] = await sql`
      select * from auditoria where accion = 'password' and "idEntidad" = ${id}
    `
    expect(row).toMatchObject({ idUsuario: id, strNombreUsuario: nombre, entidad: 'usuario' })
  })

  it.each([
    [{ strPwd: 'x' }, invalid('El campo strPwdNueva es obligatorio')],
    [{ strPwd: 5, strPwdNueva: 'x' }, invalid('El campo strPwd debe ser texto')],
    [
      { strPwd: 'x', strPwdNueva: 'ñ'.repeat(37) },
      invalid('La contraseña no puede superar los 72 bytes'),
    ],
    [
      { strPwd: 'una clave', strPwdNueva: 'una clave' },
      invalid('La contraseña nueva debe ser distinta'),
    ],
    [
      { strPwd: 'x', strPwdNueva: 'con \0 nulo' },
      invalid('El campo strPwdNueva contiene caracteres no permitidos'),
    ],
    [{ strPwd: 'con \0 nulo', strPwdNueva: 'otra clave' }, WRONG],
    [{ strPwd: 'mala', strPwdNueva: 'otra clave' }, WRONG],
    [{ strPwd: 'mala', strPwdNueva: 'mala' }, WRONG],
    [{ strPwd: 'x'.repeat(80), strPwdNueva: 'otra clave' }, WRONG],
  ])('refuses %j, and the password and the session stay', async (body, answer) => {
    const { nombre, token } = await addUser()
    expect(withoutHeaders(await change(token, body))).toEqual(answer)
    expect(await use(token)).toBe(200)
    expect(await login(nombre, 'una clave')).toEqual(expect.any(String))
  })

  it('lets one of two simultaneous changes succeed, and ends the session of the other', async () => {
    const { id, nombre, token } = await addUser()
    const passwords = ['otra clave', 'tercera clave']
    const lock: Step = (tx) => tx`select from usuario where id = ${id} for update`
    const changes = () =>
      Promise.all(
        passwords.map((strPwdNueva) => change(token, { strPwd: 'una clave', strPwdNueva })),
      )
    const answers = await sendDuring(sql, lock, changes, { count: 2 })
    const statuses = answers.map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([200, 401])
    const stored = passwords[statuses.indexOf(200)] ?? ''
    expect(await login(nombre, stored)).toEqual(expect.any(String))
  })

  it('changes the password of the caller, who has got another name and profile meanwhile, although another user has the old name', async () => {
    const { id, nombre, token } = await addUser()
    const other = await addUser()
    const answer = await changeDuring(token, 'una clave', async () => {
      await sql`
        update usuario
        set "strNombreUsuario" = 'renombrada', "idPerfil" = 1
        where id = ${id}
      `
      await sql`update usuario set "strNombreUsuario" = ${nombre} where id = ${other.id}`
    })
    const claims = app.jwt.decode<object>(answer.json().token)
    expect(claims).toMatchObject({ id, idPerfil: 1, nombre: 'renombrada' })
    expect(await login('renombrada', 'otra clave')).toEqual(expect.any(String))
    expect(await login(nombre, 'una clave')).toEqual(expect.any(String))
  })

  it.each(['una clave', 'mala'])(
    'answers 401 as without a session, if that ends meanwhile, to the password `%s`',
    async (strPwd) => {
      const { token } = await addUser()
      const logout = () => call('POST', '/api/auth/logout', undefined, { token })
      const answer = await changeDuring(token, strPwd, logout)
      expect({ status: answer.statusCode, body: answer.json() }).toEqual(UNAUTHENTICATED)
    },
  )
})

describe('the limit of attempts', async () => {
  const env = { DATABASE_URL, LOGIN_RATE_LIMIT: '2', TRUST_PROXY: 'loopback' }
  const limited = await testApp(env)

  async function attempt(method: 'POST' | 'PUT', url: string, address: string, token?: string) {
    // A login needs a captcha token, and a change of the password the right one.
    const body = { strPwd: 'mala', strPwdNueva: 'x' }
    const headers = { 'x-forwarded-for': address }
    return (await limited.call(method, url, body, { token, headers })).status
  }

  it('counts logins and changes of the password together, for an address', async () => {
    expect(await attempt('POST', '/api/auth/login', '192.0.2.1')).toBe(400)
    expect(await attempt('PUT', '/api/auth/password', '192.0.2.1')).toBe(401)
    expect(await attempt('POST', '/api/auth/login', '192.0.2.1')).toBe(429)
    expect(await attempt('PUT', '/api/auth/password', '192.0.2.1')).toBe(429)
  })

  it('counts the changes of a user’s password from all addresses', async () => {
    const { token } = await addUser()
    expect(await attempt('PUT', '/api/auth/password', '192.0.2.2', token)).toBe(401)
    expect(await attempt('PUT', '/api/auth/password', '192.0.2.3', token)).toBe(401)
    expect(await attempt('PUT', '/api/auth/password', '192.0.2.4', token)).toBe(429)
  })
})

it('the hashes of one user take turns with those of others, and at most 64 of them wait', async () => {
  const passwords = startPasswords()
  let done = 0
  const hashes = Array.from({ length: 65 }, () =>
    passwords.hash('una clave', 1).then(
      () => (done += 1),
      () => {},
    ),
  )
  await expect(passwords.hash('una clave', 1)).rejects.toMatchObject({ code: 'busy' })
  await passwords.hash('una clave', 2)
  expect(done).toBeLessThan(10)
  await passwords.close()
  await Promise.all(hashes)
})

it('at most 256 logins wait for a hash, and further ones are refused', async () => {
  const passwords = startPasswords()
  const hashes = Array.from({ length: 300 }, () =>
    passwords.hash('una clave').catch(({ code }) => code),
  )
  await sleep(0)
  await passwords.close()
  const refused = (await Promise.all(hashes)).filter((result) => result === 'busy')
  // Two of them may have a thread already.
  expect([42, 43, 44]).toContain(refused.length)
})

it('passwords are hashed in the order in which they come', async () => {
  const passwords = startPasswords()
  const order: number[] = []
  const hashes = Array.from({ length: 12 }, async (_, index) => {
    await passwords.hash('una clave')
    order.push(index)
  })
  await Promise.all(hashes)
  await passwords.close()
  // Two of them are hashed at the same time, so each is at most one place too early.
  const early = order.map((index, place) => index - place)
  expect(Math.max(...early)).toBeLessThanOrEqual(1)
})
