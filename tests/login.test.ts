import { createHmac } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { statusCodeAnswer, withoutHeaders } from './answers.js'
import { ADMIN, JWT_SECRET, testApp } from './app.js'
import { serve } from './cleanup.js'
import { usuario } from './endpoints.js'

const REJECTED = statusCodeAnswer(400, 'Fallo en la validación del captcha.')
const UNAVAILABLE = statusCodeAnswer(
  503,
  'El servicio de validación del captcha no está disponible.',
)
const NO_CREDENTIALS = statusCodeAnswer(400, 'Usuario y contraseña son obligatorios')
const NO_USER = statusCodeAnswer(401, 'El usuario no existe o su estado es the service.')
const WRONG_PASSWORD = statusCodeAnswer(401, 'Usuario o contraseña incorrectos.')
const TOO_MANY = statusCodeAnswer(429, 'Demasiados intentos. Intente de nuevo más tarde.')

const service = await testApp()
const { call, login, captcha } = service
const DATABASE_URL = service.config.DATABASE_URL.url

const credentials = (changes: object = {}) => ({ ...ADMIN, captchaToken: 'humano', ...changes })

const attempt = async (changes: object = {}) => {
  const url = '/api/auth/login'
  return withoutHeaders(await call('POST', url, credentials(changes), { token: null }))
}

it('returns a token that is signed with HS256 and valid for 8 hours, and sets no cookie', async () => {
  const answer = await call('POST', '/api/auth/login', credentials(), { token: null })
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

it('verifies the captcha once, before the credentials, with the secret and the address', async () => {
  captcha.requests.length = 0
  expect(await attempt({ strNombreUsuario: 'nadie', captchaToken: 'uno' })).toEqual(NO_USER)
  expect(await attempt({ captchaToken: 'rechazar' })).toEqual(REJECTED)
  expect(await attempt({ strPwd: undefined, captchaToken: 'tres' })).toEqual(NO_CREDENTIALS)
  expect(await attempt({ captchaToken: '' })).toEqual(REJECTED)
  const form = { secret: 'secreto del sitio', remoteip: '127.0.0.1' }
  expect(captcha.requests).toEqual([
    { ...form, response: 'uno' },
    { ...form, response: 'rechazar' },
    { ...form, response: 'tres' },
  ])
})

it('follows changes of the user’s password and state', async () => {
  // This password has 72 bytes, the most that a password may have.
  const ana = usuario('ana', { strPwd: 'ñ'.repeat(36) })
  const { id } = (await call('POST', '/api/usuario', ana)).body.data
  const as = (strPwd = ana.strPwd) => attempt({ strNombreUsuario: 'ana', strPwd })
  const update = (changes: object) => call('PUT', `/api/usuario/${id}`, { ...ana, ...changes })
  const use = (token: string) => call('GET', '/api/perfil/list', undefined, { token })
  const before = await login('ana', ana.strPwd)
  expect(await as(`${ana.strPwd}x`)).toEqual(WRONG_PASSWORD)

  await update({ strPwd: 'nueva' })
  // A new password ends the sessions that began with the old one.
  expect(await use(before)).toMatchObject({ status: 401 })
  expect(await as()).toEqual(WRONG_PASSWORD)
  const token = await login('ana', 'nueva')

  await update({ strPwd: undefined, idEstadoUsuario: false })
  expect(await as('nueva')).toEqual(NO_USER)
  expect(await use(token)).toMatchObject({ status: 401 })

  await update({ strPwd: '', idEstadoUsuario: true })
  expect(await as('nueva')).toMatchObject({ status: 200 })
  expect(await use(token)).toMatchObject({ status: 401 })
})

it('ends every session of the user at a logout, and clears the cookie', async () => {
  await call('POST', '/api/usuario', usuario('eva'))
  const use = async (token: string) =>
    (await call('GET', '/api/perfil/list', undefined, { token })).status
  const tokens = [await login('eva', 'una clave'), await login('eva', 'una clave')] as const
  const out = await call('POST', '/api/auth/logout', undefined, { token: tokens[0] })
  expect(out).toMatchObject({
    status: 200,
    body: { success: true, message: 'Sesión cerrada correctamente' },
    headers: { 'set-cookie': expect.stringMatching(/^auth_token=; Max-Age=0; Path=\/; /) },
  })
  for (const token of tokens) expect(await use(token)).toBe(401)
  expect(await use(await login('eva', 'una clave'))).toBe(200)
})

describe('the verification endpoint', () => {
  const says =
    (status: number, body: string): RequestListener =>
    (_, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(body)
    }
  const YES = '{"success":true}'
  const begin: RequestListener = (_, response) => {
    response.writeHead(200).write('{"success":true,"a":"')
  }

  /** For each captcha token: how the endpoint behaves, our answer, and the reason in the log. */
  const BEHAVIOURS: Record<string, [RequestListener, object, RegExp?]> = {
    'says no': [says(200, '{"success":false,"error-codes":["timeout-or-duplicate"]}'), REJECTED],
    'is silent': [() => {}, UNAVAILABLE, /aborted/],
    'stops in its answer': [begin, UNAVAILABLE, /aborted/],
    'answers a byte at a time': [
      (request, response) => {
        begin(request, response)
        const timer = setInterval(() => response.write('x'), 500)
        response.on('close', () => clearInterval(timer))
      },
      UNAVAILABLE,
      /aborted/,
    ],
    'answers without end': [
      (_, response) => {
        const more = () => response.write('x'.repeat(65_536), () => setImmediate(more))
        response.on('error', () => {})
        more()
      },
      UNAVAILABLE,
      /content size/,
    ],
    'hangs up': [(request) => request.socket.destroy(), UNAVAILABLE, /socket hang up/],
    'answers no JSON': [says(200, '<html>success</html>'), UNAVAILABLE, /JSON/],
    'answers nothing': [says(200, ''), UNAVAILABLE, /JSON/],
    'answers null': [says(200, 'null'), UNAVAILABLE],
    'answers a list': [says(200, '[true]'), UNAVAILABLE],
    'answers without success': [says(200, '{}'), UNAVAILABLE],
    'answers with a text': [says(200, '{"success":"true"}'), UNAVAILABLE],
    'answers with a number': [says(200, '{"success":1}'), UNAVAILABLE],
    'fails with success': [says(500, YES), UNAVAILABLE],
    'sends elsewhere': [
      (_, response) => response.writeHead(307, { location: '/' }).end(),
      UNAVAILABLE,
      /redirect/,
    ],
  }

  it('has 5 s to answer, and only its 200 with success true lets a login through', async () => {
    const url = await serve(async (request, response) => {
      const token = new URLSearchParams(await text(request)).get('response') ?? ''
      const [behave] = BEHAVIOURS[token] ?? [says(200, YES)]
      behave(request, response)
    })
    const { call, readLog } = await testApp({ DATABASE_URL, CAPTCHA_VERIFY_URL: url })

    const results = await Promise.all(
      Object.keys(BEHAVIOURS).map(async (name) => {
        const since = performance.now()
        const body = credentials({ captchaToken: name })
        const answer = await call('POST', '/api/auth/login', body, { token: null })
        return { name, answer, ms: performance.now() - since }
      }),
    )
    const lines = readLog().trim().split('\n')
    for (const { name, answer, ms } of results) {
      const [, expected, reason] = BEHAVIOURS[name] ?? []
      expect({ name, status: answer.status, body: answer.body }).toEqual({ name, ...expected })
      // Without the limit of 5 s, some of these answers would never come.
      expect(ms, name).toBeLessThan(15_000)
      const id = String(answer.headers['x-request-id'])
      const own = lines.filter((line) => line.includes(id)).join('\n')
      if (reason) expect(own, name).toMatch(reason)
    }
  })

  it('makes a login fail with 503 when it cannot be reached', async () => {
    const { call } = await testApp({ DATABASE_URL, CAPTCHA_VERIFY_URL: 'http://127.0.0.1:1' })
    const answer = await call('POST', '/api/auth/login', credentials())
    expect(withoutHeaders(answer)).toEqual(UNAVAILABLE)
  })
})

it('limits the login attempts of one address per minute, and ignores X-Forwarded-For', async () => {
  const limited = await testApp({ DATABASE_URL, LOGIN_RATE_LIMIT: '3' })
  const from = async (remoteAddress: string, headers = {}) => {
    const response = await limited.app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: credentials({ strPwd: 'otra clave' }),
      remoteAddress,
      headers,
    })
    return { status: response.statusCode, body: response.json(), headers: response.headers }
  }
  const verified = limited.captcha.requests.length
  for (let n = 0; n < 3; n++) expect(await from('192.0.2.1')).toMatchObject(WRONG_PASSWORD)
  for (const headers of [{}, { 'x-forwarded-for': '192.0.2.2' }]) {
    const { headers: answered, ...answer } = await from('192.0.2.1', headers)
    expect(answer).toEqual(TOO_MANY)
    expect(answered['retry-after']).toMatch(/^[1-9]\d*$/)
    expect(Number(answered['retry-after'])).toBeLessThanOrEqual(60)
  }
  expect(limited.captcha.requests.length).toBe(verified + 3)
  expect(await from('192.0.2.2')).toMatchObject(WRONG_PASSWORD)
  expect((await limited.call('GET', '/api/perfil')).status).toBe(200)
})

it('counts login attempts by the forwarded address behind a trusted proxy', async () => {
  const { call } = await testApp({ DATABASE_URL, LOGIN_RATE_LIMIT: '3', TRUST_PROXY: 'loopback' })
  // An attempt without a captcha token is refused before a password is compared, which takes long.
  const from = async (forwarded: string) => {
    const options = { token: null, headers: { 'x-forwarded-for': forwarded } }
    return (await call('POST', '/api/auth/login', {}, options)).status
  }
  for (let n = 0; n < 4; n++) expect(await from(`10.1.1.${n}`)).toBe(400)
  // The proxy appends the real address. The client itself can send any addresses before it.
  for (let n = 0; n < 3; n++) expect(await from(`10.2.2.${n}, 10.9.9.9`)).toBe(400)
  expect(await from('10.2.2.3, 10.9.9.9')).toBe(429)
})

it('ignores the forwarded address from a proxy outside TRUST_PROXY', async () => {
  const { app } = await testApp({ DATABASE_URL, LOGIN_RATE_LIMIT: '3', TRUST_PROXY: '10.0.0.0/8' })
  const from = async (remoteAddress: string, forwarded: string) => {
    const response = await app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: {},
      remoteAddress,
      headers: { 'x-forwarded-for': forwarded },
    })
    return response.statusCode
  }
  for (let n = 0; n < 3; n++) expect(await from('192.0.2.1', `198.51.100.${n}`)).toBe(400)
  expect(await from('192.0.2.1', '198.51.100.3')).toBe(429)
  for (let n = 0; n < 4; n++) expect(await from('10.1.2.3', `198.51.100.${n}`)).toBe(400)
})

it('limits an address even after 5,000 other addresses', { timeout: 120_000 }, async () => {
  const { app } = await testApp({ DATABASE_URL, LOGIN_RATE_LIMIT: '1', LOG_LEVEL: 'warn' })
  // The clock is stopped, so that the minute does not pass on a slow machine.
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const from = async (remoteAddress: string) => {
    const payload = { captchaToken: '' }
    const options = { method: 'POST' as const, url: '/api/auth/login', payload, remoteAddress }
    return (await app.inject(options)).statusCode
  }
  expect(await from('192.0.2.1')).toBe(400)
  // The plugin remembers 5,000 addresses by default.
  for (let n = 0; n < 5100; n++) await from(`10.0.${n >> 8}.${n & 255}`)
  expect(await from('192.0.2.1')).toBe(429)
})

describe('while JWT_SECRET is replaced', async () => {
  const OLD = 'el secreto que se va, de mas de 32 caracteres'
  const NEW = 'el secreto que llega, de mas de 32 caracteres'
  // A replica has these three configurations one after the other.
  const before = await testApp({ DATABASE_URL, JWT_SECRET: OLD, JWT_SECRET_PREVIOUS: NEW })
  const during = await testApp({ DATABASE_URL, JWT_SECRET: NEW, JWT_SECRET_PREVIOUS: OLD })
  const after = await testApp({ DATABASE_URL, JWT_SECRET: NEW })
  const statuses = (token: string) =>
    Promise.all(
      [before, during, after].map(
        async ({ call }) => (await call('GET', '/api/perfil', undefined, { token })).status,
      ),
    )

  it('accepts tokens of both secrets as long as both are configured, and always signs with JWT_SECRET', async () => {
    expect(await statuses(before.adminToken)).toEqual([200, 200, 401])
    expect(await statuses(during.adminToken)).toEqual([200, 200, 200])
  })

  it('rejects expired tokens and HS512 under the previous secret as well', async () => {
    const claims = { id: 1, idPerfil: 1, nombre: ADMIN.strNombreUsuario, iat: 1 }
    const sign = (claims: object, options?: object) =>
      before.app.jwt.sign(claims as never, options as never)
    expect(await statuses(sign({ ...claims, exp: 2 }))).toEqual([401, 401, 401])
    const HS512 = sign({ ...claims, exp: 4_102_444_800 }, { algorithm: 'HS512' })
    expect(await statuses(HS512)).toEqual([401, 401, 401])
  })

  it('rejects a signed token with an id or a version that no user can have', async () => {
    const claims = { id: 1, idPerfil: 1, nombre: ADMIN.strNombreUsuario }
    for (const wrong of [{ id: 2 ** 31 }, { id: 1.5 }, { id: '1' }, { ver: 2 ** 31 }]) {
      const token = during.app.jwt.sign({ ...claims, ...wrong } as never)
      expect(await statuses(token)).toEqual([401, 401, 401])
    }
  })

  it('rejects a token that it has accepted before, once the token has expired', async () => {
    const { app, call, adminToken } = during
    const { exp = 0 } = app.jwt.decode<{ exp: number }>(adminToken) ?? {}
    const status = async () => (await call('GET', '/api/perfil')).status
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())

    vi.setSystemTime(exp * 1000 - 1)
    expect([await status(), await status()]).toEqual([200, 200])
    vi.setSystemTime(exp * 1000 + 1)
    expect(await status()).toBe(401)
  })
})
