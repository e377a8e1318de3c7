import type { RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { statusCodeAnswer, withoutHeaders } from './answers.js'
import { ADMIN, testApp } from './app.js'
import { usuario } from './endpoints.js'
import { says, serve } from './serve.js'
import { SECRETS } from './service.js'
import { sign } from './token.js'

const UNAVAILABLE = statusCodeAnswer(
  503,
  'El servicio de validación del captcha no está disponible.',
)
const WRONG_PASSWORD = statusCodeAnswer(401, 'Usuario o contraseña incorrectos.')
const TOO_MANY = statusCodeAnswer(429, 'Demasiados intentos. Intente de nuevo más tarde.')

const service = await testApp()
const { app, call, login, captcha } = service
const DATABASE_URL = service.config.DATABASE_URL.url

const credentials = (changes: object = {}) => ({ ...ADMIN, captchaToken: 'humano', ...changes })

const attempt = async (changes: object = {}) => {
  const url = '/api/auth/login'
  return withoutHeaders(await call('POST', url, credentials(changes), { token: null }))
}

/** Returns the status of a request with this token. */
const use = async (token: string) =>
  (await call('GET', '/api/perfil/list', undefined, { token })).status

it('returns a token that is valid for 8 hours, and sets no cookie', async () => {
  const { body, headers } = await call('POST', '/api/auth/login', credentials(), { token: null })
  const { iat, exp, ...claims } = app.jwt.decode<any>(body.token)
  expect(claims).toEqual({ id: 1, idPerfil: 1, nombre: ADMIN.strNombreUsuario })
  expect(exp - iat).toBe(28_800)
  expect(headers).not.toHaveProperty('set-cookie')
})

it('refuses the password a\\0a for a, although bcrypt gives both the same hash', async () => {
  await call('POST', '/api/usuario', usuario('breve', { strPwd: 'a' }))
  expect(await attempt({ strNombreUsuario: 'breve', strPwd: 'a' })).toMatchObject({ status: 200 })
  expect(await attempt({ strNombreUsuario: 'breve', strPwd: 'a\0a' })).toEqual(WRONG_PASSWORD)
})

it('verifies the captcha once, before the credentials, with the secret and the address', async () => {
  captcha.requests.length = 0
  await attempt({ strNombreUsuario: 'nadie', captchaToken: 'uno' })
  await attempt({ captchaToken: 'rechazar' })
  await attempt({ strPwd: undefined, captchaToken: 'tres' })
  await attempt({ captchaToken: '' })
  const form = { secret: SECRETS.CAPTCHA_SECRET, remoteip: '127.0.0.1' }
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
  const update = (changes: object) => call('PUT', `/api/usuario/${id}`, { ...ana, ...changes })
  const before = await login('ana', ana.strPwd)
  const longer = { strNombreUsuario: 'ana', strPwd: `${ana.strPwd}x` }
  expect(await attempt(longer)).toEqual(WRONG_PASSWORD)

  await update({ strPwd: 'nueva' })
  // A new password ends the sessions that began with the old one.
  expect(await use(before)).toBe(401)
  const token = await login('ana', 'nueva')

  await update({ strPwd: undefined, idEstadoUsuario: false })
  await update({ strPwd: '', idEstadoUsuario: true })
  // A deactivation ends the sessions for good, and the password is still the same.
  expect(await use(token)).toBe(401)
  expect(await login('ana', 'nueva')).toEqual(expect.any(String))
})

it('ends every session of the user at a logout, and clears the cookie', async () => {
  await call('POST', '/api/usuario', usuario('eva'))
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

describe('the captcha service', () => {
  const YES = '{"success":true}'

  /** What the captcha service does, by the captcha token that it gets. */
  const FAULTS: Record<string, RequestListener> = {
    'is silent': () => {},
    'answers a byte at a time': (_, response) => {
      response.writeHead(200).write('{"success":true,"a":"')
      const timer = setInterval(() => response.write('x'), 500)
      response.on('close', () => clearInterval(timer))
    },
    'answers without end': (_, response) => {
      const more = () => response.write('x'.repeat(65_536), () => setImmediate(more))
      response.on('error', () => {})
      more()
    },
    'hangs up': (request) => request.socket.destroy(),
    'answers no JSON': says(200, '<html>success</html>'),
    'answers without success': says(200, '{}'),
    'answers with a text': says(200, '{"success":"true"}'),
    'fails with success': says(500, YES),
    'sends elsewhere': (request, response) => {
      if (request.url === '/elsewhere') says(200, YES)(request, response)
      else response.writeHead(307, { location: '/elsewhere' }).end()
    },
  }
  const NAMES = Object.keys(FAULTS)

  // Two of the answers never come.
  it('has 5 s to answer, and only its 200 with success true lets a login through', {
    timeout: 10_000,
  }, async () => {
    let open = 0
    const url = await serve(async (request, response) => {
      open += 1
      request.socket.once('close', () => {
        open -= 1
      })
      const form = new URLSearchParams(await text(request))
      FAULTS[form.get('response') ?? '']?.(request, response)
    })
    const { call, readLog } = await testApp({ DATABASE_URL, CAPTCHA_VERIFY_URL: url })
    const begin = performance.now()
    const answers = await Promise.all(
      NAMES.map(async (captchaToken) => {
        const answer = await call('POST', '/api/auth/login', credentials({ captchaToken }))
        return { captchaToken, ...withoutHeaders(answer) }
      }),
    )
    expect(performance.now() - begin).toBeGreaterThan(4900)
    expect(answers).toEqual(NAMES.map((captchaToken) => ({ captchaToken, ...UNAVAILABLE })))
    // The answer without end was not read for 5 s.
    expect(readLog()).toMatch(/content size .* over limit/)
    // Nor does the service keep the connection to a host that never answers.
    await expect.poll(() => open).toBe(0)
  })
})

it('limits the login attempts of one address per minute, and ignores X-Forwarded-For', async () => {
  const limited = await testApp({ DATABASE_URL, LOGIN_RATE_LIMIT: '3' })
  const attempt = (headers = {}) => {
    const wrong = credentials({ strPwd: 'otra clave' })
    return limited.call('POST', '/api/auth/login', wrong, { token: null, headers })
  }
  for (let n = 0; n < 3; n++) expect(await attempt()).toMatchObject(WRONG_PASSWORD)
  const refused = await attempt({ 'x-forwarded-for': '192.0.2.2' })
  expect(withoutHeaders(refused)).toEqual(TOO_MANY)
  expect(refused.headers['retry-after']).toMatch(/^\d+$/)
  expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60)
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(30)
  expect(limited.captcha.requests).toHaveLength(3)
  expect((await limited.call('GET', '/api/perfil')).status).toBe(200)
})

describe('by the address of the client', () => {
  /** Returns a function that attempts a login from `remoteAddress`, and returns the status. */
  async function attemptWith(env: Record<string, string>) {
    const { app } = await testApp({ DATABASE_URL, ...env })
    return async (remoteAddress: string, forwarded?: string) => {
      const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
      // Without a captcha token it is refused before a password is compared, which takes long.
      const login = { method: 'POST', url: '/api/auth/login', payload: {} } as const
      return (await app.inject({ ...login, remoteAddress, headers })).statusCode
    }
  }

  it('counts the attempts behind a trusted proxy, which appends it to X-Forwarded-For', async () => {
    const from = await attemptWith({ LOGIN_RATE_LIMIT: '3', TRUST_PROXY: '10.0.0.0/8' })
    for (let n = 0; n < 4; n++) expect(await from('10.1.2.3', `198.51.100.${n}`)).toBe(400)
    // The client itself can send any addresses before the one that the proxy appends.
    for (let n = 0; n < 3; n++) expect(await from('10.1.2.3', `1.1.1.${n}, 192.0.2.9`)).toBe(400)
    expect(await from('10.1.2.3', '1.1.1.3, 192.0.2.9')).toBe(429)
    // A proxy that is not trusted is the client.
    for (let n = 0; n < 3; n++) expect(await from('192.0.2.1', `198.51.100.${n}`)).toBe(400)
    expect(await from('192.0.2.1', '198.51.100.3')).toBe(429)
  })

  it('counts the attempts of an IPv6 network of 64 bits together', async () => {
    const from = await attemptWith({ LOGIN_RATE_LIMIT: '1' })
    expect(await from('2001:db8:1:2::1')).toBe(400)
    expect(await from('2001:db8:1:2:ffff::9')).toBe(429)
    expect(await from('2001:db8:1:3::1')).toBe(400)
  })

  it('limits the attempts even after 5,000 other addresses', { timeout: 120_000 }, async () => {
    const from = await attemptWith({ LOGIN_RATE_LIMIT: '1', LOG_LEVEL: 'warn' })
    // The clock is stopped, so that the minute does not pass on a slow machine.
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    expect(await from('192.0.2.1')).toBe(400)
    // The plugin remembers 5,000 addresses by default.
    for (let n = 0; n < 5100; n++) await from(`10.0.${n >> 8}.${n & 255}`)
    expect(await from('192.0.2.1')).toBe(429)
  })
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
    const expired = sign({ id: 1, exp: 2 }, 'HS256', OLD)
    expect(await statuses(expired)).toEqual([401, 401, 401])
    const HS512 = sign({ id: 1, exp: 4_102_444_800 }, 'HS512', OLD)
    expect(await statuses(HS512)).toEqual([401, 401, 401])
  })
})
