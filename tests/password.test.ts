import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { startPasswords } from '../src/access/password.js'
import { statusCodeAnswer, UNAUTHENTICATED } from './answers.js'
import { ADMIN, testApp } from './app.js'
import { usuario } from './endpoints.js'
import { countWaiting } from './hold.js'

const { app, config, sql, call, login } = await testApp()
const DATABASE_URL = config.DATABASE_URL.url
const WRONG = statusCodeAnswer(401, 'Usuario o contraseña incorrectos.')

let turn = 0
/** Adds a user with the password `una clave`; returns the user's id, name and token. */
async function addUser() {
  turn += 1
  const nombre = `persona${turn}`
  const { body } = await call('POST', '/api/usuario', usuario(nombre))
  return { id: body.data.id as number, nombre, token: await login(nombre, 'una clave') }
}

const change = (token: string | null, body: object, through = call) =>
  through('PUT', '/api/auth/password', body, { token })
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
    await expect(login(nombre, 'una clave')).rejects.toThrow('incorrectos')
    const [row] = await sql`
      select * from auditoria where accion = 'password' and "idEntidad" = ${id}
    `
    expect(row).toMatchObject({ idUsuario: id, strNombreUsuario: nombre, entidad: 'usuario' })
  })

  it.each([
    [{ strPwdNueva: 'x' }, 'El campo strPwd es obligatorio'],
    [{ strPwd: 'x' }, 'El campo strPwdNueva es obligatorio'],
    [{ strPwd: 5, strPwdNueva: 'x' }, 'El campo strPwd debe ser texto'],
    [
      { strPwd: 'x', strPwdNueva: 'con \0 nulo' },
      'El campo strPwdNueva contiene caracteres no permitidos',
    ],
    [
      { strPwd: 'x', strPwdNueva: 'medio par \ud800' },
      'El campo strPwdNueva contiene caracteres no permitidos',
    ],
    [{ strPwd: 'x', strPwdNueva: 'ñ'.repeat(37) }, 'La contraseña no puede superar los 72 bytes'],
    [{ strPwd: 'una clave', strPwdNueva: 'una clave' }, 'La contraseña nueva debe ser distinta'],
  ])('refuses %j and changes nothing', async (body, message) => {
    const { token } = await addUser()
    expect(await change(token, body)).toMatchObject(statusCodeAnswer(400, message))
    expect(await use(token)).toBe(200)
  })

  it.each([
    ['mala', 'otra clave'],
    ['mala', 'mala'],
    ['x'.repeat(80), 'otra clave'],
    ['con \0 nulo', 'otra clave'],
  ])(
    'answers 401 to the wrong password %j, and the session goes on',
    async (strPwd, strPwdNueva) => {
      const { nombre, token } = await addUser()
      expect(await change(token, { strPwd, strPwdNueva })).toMatchObject(WRONG)
      expect(await use(token)).toBe(200)
      expect(await login(nombre, 'una clave')).toEqual(expect.any(String))
    },
  )

  it('lets one of two simultaneous changes succeed, and ends the session of the other', async () => {
    const { id, nombre, token } = await addUser()
    const passwords = ['otra clave', 'tercera clave']
    let answers: Promise<{ status: number }[]> | undefined
    await sql.begin(async (tx) => {
      await tx`select from usuario where id = ${id} for update`
      const changes = passwords.map((strPwdNueva) =>
        change(token, { strPwd: 'una clave', strPwdNueva }),
      )
      answers = Promise.all(changes)
      await expect.poll(() => countWaiting(sql), { timeout: 20_000 }).toBe(2)
    })
    const statuses = (await answers)?.map(({ status }) => status) ?? []
    expect(statuses.toSorted()).toEqual([200, 401])
    const stored = passwords[statuses.indexOf(200)] ?? ''
    expect(await login(nombre, stored)).toEqual(expect.any(String))
  })

  it('changes nothing when the user is deactivated meanwhile', async () => {
    const { id, nombre, token } = await addUser()
    let answer: ReturnType<typeof change> | undefined
    await sql.begin(async (tx) => {
      await tx`update usuario set "idEstadoUsuario" = false where id = ${id}`
      answer = change(token, { strPwd: 'una clave', strPwdNueva: 'otra clave' })
      await expect.poll(() => countWaiting(sql), { timeout: 20_000 }).toBeGreaterThan(0)
    })
    expect(await answer).toMatchObject(UNAUTHENTICATED)
    await sql`update usuario set "idEstadoUsuario" = true where id = ${id}`
    expect(await login(nombre, 'una clave')).toEqual(expect.any(String))
  })

  it('does not accept the password of another user, who gets the name meanwhile', async () => {
    const { id, nombre, token } = await addUser()
    const other = await addUser()
    // The service reads the body after it has looked up the session.
    async function* body() {
      yield '{"strPwd":"una clave",'
      await sql`update usuario set "strNombreUsuario" = 'renombrada' where id = ${id}`
      await sql`update usuario set "strNombreUsuario" = ${nombre} where id = ${other.id}`
      yield '"strPwdNueva":"otra clave"}'
    }
    const answer = await app.inject({
      method: 'PUT',
      url: '/api/auth/password',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      payload: Readable.from(body()),
    })
    expect({ status: answer.statusCode, body: answer.json() }).toEqual(UNAUTHENTICATED)
    expect(await login('renombrada', 'una clave')).toEqual(expect.any(String))
  })
})

describe('the limit of attempts', () => {
  const LIMIT = { status: 429, headers: { 'retry-after': expect.any(String) } }

  it('counts logins and changes of the password together, for an address', async () => {
    const from = { 'x-forwarded-for': '192.0.2.1' }
    const proxied = await testApp({ DATABASE_URL, LOGIN_RATE_LIMIT: '3', TRUST_PROXY: 'loopback' })
    const credentials = { ...ADMIN, captchaToken: 'rechazar' }
    const attempts = []
    for (let n = 0; n < 2; n += 1) {
      const options = { token: null, headers: from }
      attempts.push(await proxied.call('POST', '/api/auth/login', credentials, options))
      const body = { strPwd: 'mala', strPwdNueva: 'x' }
      attempts.push(await proxied.call('PUT', '/api/auth/password', body, { headers: from }))
    }
    expect(attempts.map(({ status }) => status)).toEqual([400, 401, 400, 429])
    expect(attempts[3]).toMatchObject(LIMIT)
  })

  it('counts the changes of a user’s password from all addresses', async () => {
    const proxied = await testApp({ DATABASE_URL, LOGIN_RATE_LIMIT: '2', TRUST_PROXY: 'loopback' })
    const statuses = []
    for (let n = 1; n <= 3; n += 1) {
      const body = { strPwd: 'mala', strPwdNueva: 'x' }
      const headers = { 'x-forwarded-for': `192.0.2.${n}` }
      statuses.push((await proxied.call('PUT', '/api/auth/password', body, { headers })).status)
    }
    expect(statuses).toEqual([401, 401, 429])
  })
})

it('the hashes of one user take turns with those of others, and at most 64 of them wait', async () => {
  const passwords = startPasswords()
  let done = 0
  const count = () => {
    done += 1
  }
  const many = Array.from({ length: 64 }, () =>
    passwords.hash('una clave', 1).then(count, () => {}),
  )
  await sleep(0)
  many.push(passwords.hash('una clave', 1).then(count, () => {}))
  await expect(passwords.hash('una clave', 1)).rejects.toMatchObject({ code: 'busy' })
  await passwords.hash('una clave', 2)
  expect(done).toBeLessThan(10)
  await passwords.close()
  await Promise.all(many)
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
  // Two of them are hashed at the same time. So when one is ready, at most one earlier one is not.
  const overtaken = order.map((index, position) => {
    const earlier = order.slice(0, position).filter((other) => other < index)
    return index - earlier.length
  })
  expect(Math.max(...overtaken)).toBeLessThanOrEqual(1)
})
