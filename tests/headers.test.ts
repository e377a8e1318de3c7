import { describe, expect, it } from 'vitest'
import { ADMIN, API_HEADERS, testApp } from './app.js'

const ORIGIN = 'https://admin.ejemplo.com'
const credentials = { ...ADMIN, captchaToken: 'humano' }
const nuevo = (name: string) => ({ strNombreModulo: name })

const { call, adminToken, config } = await testApp({ CORS_ORIGIN: ORIGIN })

describe('headers', () => {
  it('has nothing made of any answer of the API, and none kept, failures included', async () => {
    for (const [method, url] of [
      ['GET', '/api/perfil'],
      ['GET', '/%61pi/perfil'],
      ['GET', '/api/nada'],
      ['POST', '/api/auth/login'],
    ] as const) {
      const { headers } = await call(method, url)
      expect(headers).toMatchObject(API_HEADERS)
      const others = Object.keys(headers).filter((name) => !(name in API_HEADERS))
      expect(others.filter((name) => !name.startsWith('access-control-')).toSorted()).toEqual([
        'connection',
        'content-length',
        'content-type',
        'date',
        'vary',
        'x-request-id',
      ])
    }
  })

  it('has them where the path cannot be decoded too, and an id of the request', async () => {
    const { headers } = await call('GET', '/api/permisos/por-perfil/%ff')
    expect(headers).toMatchObject({
      ...API_HEADERS,
      'x-request-id': expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/),
    })
  })

  it('sends a policy that the documentation page works under', async () => {
    for (const [url, code] of [
      ['/health/live', 200],
      ['/nada', 404],
    ] as const) {
      const { status, headers } = await call('GET', url)
      expect(status).toBe(code)
      expect(headers['content-security-policy']).toContain("script-src 'self'")
      expect(headers['content-security-policy']).toContain("img-src 'self' data:;")
      expect(headers['content-security-policy']).not.toContain('upgrade-insecure-requests')
      expect(headers['x-content-type-options']).toBe('nosniff')
    }
  })

  it('lets a listed origin in with credentials, and no other', async () => {
    const preflight = (origin: string) =>
      call('OPTIONS', '/api/perfil/1', undefined, {
        headers: { origin, 'access-control-request-method': 'PUT' },
      })
    expect((await preflight(ORIGIN)).headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, POST, PUT, DELETE',
    })
    const plain = await call('GET', '/api/perfil', undefined, { headers: { origin: ORIGIN } })
    expect(plain.headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-expose-headers': 'x-request-id, retry-after, etag',
    })
    const other = await preflight('https://otra.ejemplo.com')
    expect(other.headers).not.toHaveProperty('access-control-allow-origin', expect.anything())
  })

  it('takes OPTIONS that is no preflight for one', async () => {
    const { status } = await call('OPTIONS', '/api/perfil', undefined, {
      headers: { origin: ORIGIN },
    })
    expect(status).toBe(204)
  })

  it('says nothing about origins where none is listed', async () => {
    const { call } = await testApp({ DATABASE_URL: config.databaseUrl })
    const { headers } = await call('GET', '/api/perfil', undefined, { headers: { origin: ORIGIN } })
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  it('takes no write from another site on the cookie alone, unless its origin is listed', async () => {
    const post = (name: string, headers: object, token?: string | null) =>
      call('POST', '/api/modulo', nuevo(name), { headers, ...(token === null && { token }) })
    const site = { 'sec-fetch-site': 'cross-site' }
    const bearer = { ...site, authorization: `Bearer ${adminToken}` }

    expect(await post('a', { ...site, origin: 'https://otra.ejemplo.com' })).toMatchObject({
      status: 403,
      body: { statusCode: 403, message: 'No tiene permiso para realizar esta acción' },
    })
    expect(await post('a', site)).toMatchObject({ status: 403 })
    for (const other of ['Basic eDp5', `No${bearer.authorization}`, `${bearer.authorization} x`]) {
      expect(await post('a', { ...site, authorization: other })).toMatchObject({ status: 403 })
    }
    expect(await post('b', { ...site, origin: ORIGIN })).toMatchObject({ status: 200 })
    expect(await post('c', bearer, null)).toMatchObject({ status: 200 })
    const spaced = { ...site, authorization: `bearer  ${adminToken}` }
    expect(await post('e', spaced, null)).toMatchObject({ status: 200 })
    expect(await post('d', { 'sec-fetch-site': 'same-site' })).toMatchObject({ status: 200 })
    for (const method of ['GET', 'HEAD'] as const) {
      const read = await call(method, '/api/perfil', undefined, { headers: site })
      expect(read).toMatchObject({ status: 200 })
    }
  })
})

describe('login attempts', () => {
  const attempts = async (env: Record<string, string>, forwarded: (turn: number) => string) => {
    const service = await testApp({
      LOGIN_RATE_LIMIT: '3',
      DATABASE_URL: config.databaseUrl,
      ...env,
    })
    const before = service.captcha.requests.length
    const answers = []
    for (let turn = 0; turn < 4; turn += 1) {
      const headers = { 'x-forwarded-for': forwarded(turn) }
      const options = { token: null, headers }
      answers.push(await service.call('POST', '/api/auth/login', credentials, options))
    }
    return { answers, verified: service.captcha.requests.length - before }
  }

  it('are limited by address, before the captcha is asked', async () => {
    // The harness has logged in once.
    const { answers, verified } = await attempts({}, (turn) => `10.1.1.${turn}`)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429])
    expect(answers[3]).toMatchObject({
      body: { statusCode: 429, message: 'Demasiados intentos. Intente de nuevo más tarde.' },
      headers: { 'retry-after': expect.stringMatching(/^\d+$/) },
    })
    expect(verified).toBe(2)
  })

  it('are counted by the forwarded address where the proxy is trusted', async () => {
    const trusted = { TRUST_PROXY: 'loopback' }
    const { answers } = await attempts(trusted, (turn) => `10.1.1.${turn}`)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    const spoofed = await attempts(trusted, (turn) => `10.2.2.${turn}, 10.9.9.9`)
    expect(spoofed.answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
  })
})
