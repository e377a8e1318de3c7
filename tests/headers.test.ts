import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { UNAUTHENTICATED } from './answers.js'
import { ADMIN, API_HEADERS, testApp } from './app.js'

const ORIGIN = 'https://admin.ejemplo.com'

const { app, call, adminToken, config } = await testApp({ CORS_ORIGIN: ORIGIN })

describe('headers', () => {
  it('sends the security headers with every answer of the API, failures included', async () => {
    for (const [method, url] of [
      ['GET', '/api/perfil'],
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

  it('sends WWW-Authenticate with every 401 and with no other answer', async () => {
    const nobody = { token: null }
    const login = { ...ADMIN, captchaToken: 'humano', strPwd: 'otra' }
    const answers = [
      await call('GET', '/api/perfil', undefined, nobody),
      await call('POST', '/api/auth/login', login, nobody),
    ]
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } })
    }
    for (const url of ['/api/perfil', '/api/nada']) {
      expect((await call('GET', url)).headers).not.toHaveProperty('www-authenticate')
    }
  })

  it('sends the documentation with a content security policy that lets its page work', async () => {
    const { statusCode, headers } = await app.inject('/docs')
    expect(statusCode).toBe(200)
    expect(headers['content-security-policy']).toContain("default-src 'self';")
    expect(headers['content-security-policy']).toContain("img-src 'self' data:")
    expect(headers['content-security-policy']).not.toContain('upgrade-insecure-requests')
    expect(headers['x-content-type-options']).toBe('nosniff')
  })

  it('refuses a request with more than 200 headers, and reads the forwarded address in the last one', async () => {
    const { app, readLines } = await testApp({
      DATABASE_URL: config.DATABASE_URL.url,
      TRUST_PROXY: 'loopback',
    })
    const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
    async function send(count: number) {
      const client = connect(Number(port), '127.0.0.1')
      const headers = `${'a:b\r\n'.repeat(count - 1)}X-Forwarded-For: 192.0.2.7\r\n`
      client.write(`GET /unknown HTTP/1.0\r\n${headers}\r\n`)
      return text(client)
    }
    expect(await send(200)).toMatch(/^HTTP\/1.1 404/)
    expect(readLines().at(-1)).toMatchObject({ path: '/unknown', ip: '192.0.2.7' })
    // Newer releases of Node refuse 3,000 headers before the service does.
    for (const count of [201, 3000]) {
      expect(await send(count)).toMatch(/^HTTP\/1.1 4(00|31)/)
    }
  })

  it('allows CORS with credentials for listed origins only', async () => {
    const preflight = (origin: string) =>
      call('OPTIONS', '/api/perfil/1', undefined, {
        headers: {
          origin,
          'access-control-request-method': 'PUT',
          'access-control-request-headers': 'authorization',
        },
      })
    expect((await preflight(ORIGIN)).headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, POST, PUT, DELETE',
      'access-control-allow-headers': 'authorization',
      'access-control-max-age': '600',
    })
    const plain = await call('GET', '/api/perfil', undefined, { headers: { origin: ORIGIN } })
    expect(plain.headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-expose-headers': 'x-request-id, x-needs, retry-after, etag',
    })
    const incomplete = { headers: { origin: ORIGIN } }
    expect((await call('OPTIONS', '/api/perfil/1', undefined, incomplete)).status).toBe(204)
    const other = await preflight('https://otra.ejemplo.com')
    expect(other.headers).not.toHaveProperty('access-control-allow-origin', expect.anything())
  })

  it('sends no CORS header when no origin is listed', async () => {
    const { call } = await testApp({ DATABASE_URL: config.DATABASE_URL.url })
    const { headers } = await call('GET', '/api/perfil', undefined, { headers: { origin: ORIGIN } })
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  describe('a request with the cookie', () => {
    const site = { 'sec-fetch-site': 'cross-site' }
    const send = (method: 'GET' | 'POST', headers: object) =>
      call(method, '/api/modulo', undefined, { headers })

    it.each([
      ['from a page of another site', site],
      ['from an origin that is not listed', { ...site, origin: 'https://otra.ejemplo.com' }],
      ['from another site with `NoBearer`', { ...site, authorization: `NoBearer ${adminToken}` }],
    ])('gets 401 if it comes %s', async (_, headers) => {
      expect(await send('GET', headers)).toMatchObject(UNAUTHENTICATED)
      expect(await send('POST', headers)).toMatchObject(UNAUTHENTICATED)
    })

    it.each([
      ['from no page', {}],
      ['from a page of the same site', { 'sec-fetch-site': 'same-site' }],
      ['from an origin that is listed', { ...site, origin: ORIGIN }],
      ['from another site with the token', { ...site, authorization: `Bearer ${adminToken}` }],
      ['from another site with `bearer`', { ...site, authorization: `bearer  ${adminToken}` }],
      ['with a header that is not Bearer', { authorization: 'Bearer-x y' }],
    ])('is let through if it comes %s', async (_, headers) => {
      expect((await send('GET', headers)).status).toBe(200)
      expect((await send('POST', headers)).status).toBe(200)
    })
  })
})
