import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { startPasswords } from '../src/auth/password.js'
import { Failure } from '../src/failure.js'
import { ADMIN, JWT_SECRET, testApp } from './app.js'

const LOGIN = { ...ADMIN, captchaToken: 'humano' }
const TOO_MANY = {
  statusCode: 429,
  message: 'Demasiados intentos. Intente de nuevo más tarde.',
}
const { call, login, adminToken, captcha } = await testApp()

const attempt = async (changes: object = {}, through = call) => {
  const { status, body } = await through(
    'POST',
    '/api/auth/login',
    { ...LOGIN, ...changes },
    { token: null },
  )
  return { status, body }
}

it('signs a token of 8 hours with HS256, and sets no cookie', async () => {
  const answer = await call('POST', '/api/auth/login', LOGIN, { token: null })
  const [header, payload, signature] = answer.body.token.split('.')
  const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  const { iat, exp, ...claims } = decode(payload)

  expect(decode(header)).toMatchObject({ alg: 'HS256' })
  expect(signature).toBe(
    createHmac('sha256', JWT_SECRET).update(`${header}.${payload}`).digest('base64url'),
  )
  expect(claims).toEqual({ id: 1, idPerfil: 1, nombre: ADMIN.strNombreUsuario })
  expect(exp - iat).toBe(28_800)
  expect(Math.abs(iat - Date.now() / 1000)).toBeLessThan(10)
  expect(answer.headers).not.toHaveProperty('set-cookie')
})

it('has the captcha verified first, once, with the secret and the address', async () => {
  captcha.requests.length = 0
  await attempt({ strNombreUsuario: 'nadie', captchaToken: 'uno' })
  expect(await attempt({ captchaToken: 'rechazar' })).toEqual({
    status: 400,
    body: { statusCode: 400, message: 'Fallo en la validación del captcha.' },
  })
  await attempt({ strPwd: undefined, captchaToken: 'tres' })
  await attempt({ captchaToken: '' })
  const form = { secret: 'secreto del sitio', remoteip: '127.0.0.1' }
  expect(captcha.requests).toEqual([
    { ...form, response: 'uno' },
    { ...form, response: 'rechazar' },
    { ...form, response: 'tres' },
  ])
})

it('follows what the user has become', async () => {
  const user = {
    strNombreUsuario: 'ana',
    idPerfil: 1,
    strPwd: 'ñ'.repeat(36),
    strCorreo: 'ana@ejemplo.com',
    idEstadoUsuario: true,
  }
  const { body } = await call('POST', '/api/usuario', user)
  const ana = (strPwd = user.strPwd) => attempt({ strNombreUsuario: 'ana', strPwd })
  const update = (changes: object) =>
    call('PUT', `/api/usuario/${body.data.id}`, { ...user, ...changes }, { token: adminToken })
  const wrong = {
    status: 401,
    body: { statusCode: 401, message: 'Usuario o contraseña incorrectos.' },
  }
  expect(await ana()).toMatchObject({ status: 200 })
  expect(await ana(`${user.strPwd}x`)).toEqual(wrong)

  await update({ strPwd: 'nueva' })
  expect(await ana()).toEqual(wrong)
  const token = await login('ana', 'nueva')

  await update({ strPwd: undefined, idEstadoUsuario: false })
  expect(await ana('nueva')).toEqual({
    status: 401,
    body: { statusCode: 401, message: 'El usuario no existe o su estado es the service.' },
  })
  expect((await call('GET', '/api/perfil/list', undefined, { token })).status).toBe(401)

  await update({ strPwd: '', idEstadoUsuario: true })
  expect(await ana('nueva')).toMatchObject({ status: 200 })
  expect((await call('GET', '/api/perfil/list', undefined, { token })).status).toBe(200)
})

describe('with a verification endpoint that misbehaves', () => {
  let respond = (response: ServerResponse) => {
    response.end('{"success":true}')
  }
  const server = createServer((_, response) => respond(response))
  let unsure: Awaited<ReturnType<typeof testApp>>

  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    unsure = await testApp({ CAPTCHA_VERIFY_URL: `http://127.0.0.1:${port}` })
  })

  const UNAVAILABLE = {
    status: 503,
    body: {
      statusCode: 503,
      message: 'El servicio de validación del captcha no está disponible.',
    },
  }

  it.each(['', '<html>', 'null', '[]', '{}', '{"success":"true"}', '{"success":1}'])(
    'that answers %j: 503',
    async (answer) => {
      respond = (response) => response.end(answer)
      expect(await attempt({}, unsure.call)).toEqual(UNAVAILABLE)
    },
  )

  it.each([
    ['that hangs up', (response: ServerResponse) => response.destroy(), /socket hang up/],
    ['that fails', (response: ServerResponse) => response.writeHead(500).end(), /JSON/],
    [
      'that sends elsewhere',
      (response: ServerResponse) => response.writeHead(302, { location: '/' }).end(),
      /redirect mode is set to error/,
    ],
    ['that never answers', () => {}, /aborted/],
  ])('%s: 503, and the log says why', async (_, misbehave, reason) => {
    respond = misbehave
    const start = Date.now()
    expect(await attempt({}, unsure.call)).toEqual(UNAVAILABLE)
    expect(Date.now() - start).toBeLessThan(7000)
    const { err } = JSON.parse(
      unsure
        .readLog()
        .match(/.+"msg":"unavailable".*/g)
        ?.at(-1) ?? '{}',
    )
    expect(err).toMatchObject({ message: expect.stringMatching(reason) })
  })

  it('that cannot be reached: 503', async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
    expect(await attempt({}, unsure.call)).toEqual(UNAVAILABLE)
  })
})

it('refuses what would have to wait too long for a thread', async () => {
  const passwords = startPasswords()
  const calls = Array.from({ length: 300 }, () => passwords.hash('x'))
  expect(passwords.waiting()).toBe(256)
  // Beside those that wait, at most two have been given to threads.
  const reason = new Failure('busy', 'Servicio ocupado. Intente de nuevo más tarde.')
  expect(await Promise.allSettled(calls.slice(258))).toEqual(
    Array(42).fill({ status: 'rejected', reason }),
  )
  await Promise.all([passwords.close(), Promise.allSettled(calls)])
})

it('limits the attempts of one address a minute, and believes no forwarded one', async () => {
  const limited = await testApp({ LOGIN_RATE_LIMIT: '3' })
  const from = async (remoteAddress: string, headers = {}) => {
    const response = await limited.app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: { ...LOGIN, strPwd: 'otra clave' },
      remoteAddress,
      headers,
    })
    return { status: response.statusCode, body: response.json(), headers: response.headers }
  }
  for (let n = 0; n < 3; n++) expect(await from('192.0.2.1')).toMatchObject({ status: 401 })
  for (const headers of [{}, { 'x-forwarded-for': '192.0.2.2' }]) {
    const { headers: answered, ...reply } = await from('192.0.2.1', headers)
    expect(reply).toEqual({ status: 429, body: TOO_MANY })
    expect(Number(answered['retry-after'])).toBeGreaterThan(0)
  }
  expect(await from('192.0.2.2')).toMatchObject({ status: 401 })
  expect((await limited.call('GET', '/api/perfil')).status).toBe(200)
  // Logging out is no attempt: with a session that has ended it is refused for that.
  for (let n = 0; n < 5; n++) {
    const { status } = await limited.call('POST', '/api/auth/logout')
    expect(status).toBe(n === 0 ? 200 : 401)
  }
})

it('takes the longest password there may be', async () => {
  const strPwd = 'ñ'.repeat(36)
  const usuario = { strNombreUsuario: 'larga', idPerfil: 1, strPwd, strCorreo: 'l@ejemplo.com' }
  expect((await call('POST', '/api/usuario', usuario)).status).toBe(200)
  expect((await attempt({ strNombreUsuario: 'larga', strPwd })).status).toBe(200)
})

it('keeps passwords, tokens and hashes out of the log', async () => {
  const talkative = await testApp({ LOG_LEVEL: 'trace' })
  const { body } = await talkative.call('POST', '/api/usuario', {
    strNombreUsuario: 'ana',
    idPerfil: 1,
    strPwd: 'secreta de ana',
    strCorreo: 'ana@ejemplo.com',
  })
  await attempt({ strPwd: 'otra clave', captchaToken: 'ficha' }, talkative.call)
  const log = talkative.readLog()
  expect(log).toContain('/api/auth/login')
  for (const secret of [
    ADMIN.strPwd,
    'secreta de ana',
    'otra clave',
    'ficha',
    'secreto del sitio',
    body.data.strPwd,
    talkative.adminToken,
    JWT_SECRET,
  ])
    expect(log).not.toContain(secret)
})
