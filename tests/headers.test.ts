import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { NOT_FOUND, UNAUTHENTICATED } from './answers.js'
import { ADMIN, API_HEADERS, testApp } from './app.js'

const ORIGIN = 'https://admin.ejemplo.com'
const nuevo = (name: string) => ({ strNombreModulo: name })

const { app, call, adminToken, config } = await testApp({ CORS_ORIGIN: ORIGIN })

describe('headers', () => {
  it('sends the security headers with every answer of the API, failures included', async () => {
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

  it('sends WWW-Authenticate with every 401 and with no other answer', async () => {
    const nobody = { token: null }
    const login = { ...ADMIN, captchaToken: 'humano' }
    const answers = [
      await call('GET', '/api/perfil', undefined, nobody),
      await call('HEAD', '/api/perfil', undefined, nobody),
      await call('PUT', '/api/modulo/1', {}, { token: 'x' }),
      await call('POST', '/api/auth/login', { ...login, strPwd: 'otra' }, nobody),
      await call('POST', '/api/auth/login', { ...login, strNombreUsuario: 'nadie' }, nobody),
    ]
    for (const { status, headers } of answers) {
      expect({ status, header: headers['www-authenticate'] }).toEqual({
        status: 401,
        header: 'Bearer',
      })
    }
    for (const url of ['/api/perfil', '/api/nada', '/health/live']) {
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
    expect(await call('GET', '/docs/static/nothing')).toMatchObject(NOT_FOUND)
  })

  it('uses the forwarded address exactly as the trusted proxy has written it', async () => {
    const behind = await testApp({
      DATABASE_URL: config.DATABASE_URL.url,
      TRUST_PROXY: 'loopback',
      LOGIN_RATE_LIMIT: '2',
    })
    const addresses = ['1.2.3.4', '1.2.3.4', '1.2.3.4', '1.2.3.4:5', '[2001:db8::1]:5', 'unknown']
    const before = behind.readLog().length
    const statuses = []
    for (const address of addresses) {
      const headers = { 'x-forwarded-for': address }
      statuses.push((await behind.call('POST', '/api/auth/login', {}, { headers })).status)
    }
    // An address with a port counts as another address, so a proxy must not add the port.
    expect(statuses).toEqual([400, 400, 429, 400, 400, 400])
    const log = behind.readLog().slice(before)
    const ips = log.match(/(?<="ip":")[^"]+(?=.*"msg":"request")/g)
    expect(ips).toEqual(addresses)
  })

  it('uses the forwarded address also after thousands of other headers', async () => {
    const { app, readLines } = await testApp({
      DATABASE_URL: config.DATABASE_URL.url,
      TRUST_PROXY: 'loopback',
    })
    const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
    const client = connect(Number(port), '127.0.0.1')
    client.write(
      `GET /unknown HTTP/1.0\r\n${'a:b\r\n'.repeat(3000)}X-Forwarded-For: 192.0.2.7\r\n\r\n`,
    )
    expect(await text(client)).toMatch(/^HTTP\/1.1 404/)
    expect(readLines().at(-1)).toMatchObject({ path: '/unknown', ip: '192.0.2.7' })
  })

  it('allows CORS with credentials for listed origins only', async () => {
    const preflight = (origin: string) =>
      call('OPTIONS', '/api/perfil/1', undefined, {
        headers: { origin, 'access-control-request-method': 'PUT' },
      })
    expect((await preflight(ORIGIN)).headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, POST, PUT, DELETE',
      'access-control-max-age': '600',
    })
    const plain = await call('GET', '/api/perfil', undefined, { headers: { origin: ORIGIN } })
    expect(plain.headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-expose-headers': 'x-request-id, x-needs, retry-after, etag',
    })
    const incomplete = { headers: { origin: ORIGIN } }
    expect(await call('OPTIONS', '/api/perfil/1', undefined, incomplete)).toMatchObject({
      status: 204,
    })
    const other = await preflight('https://otra.ejemplo.com')
    expect(other.headers).not.toHaveProperty('access-control-allow-origin', expect.anything())
  })

  it('sends no CORS header when no origin is listed', async () => {
    const { call } = await testApp({ DATABASE_URL: config.DATABASE_URL.url })
    const { headers } = await call('GET', '/api/perfil', undefined, { headers: { origin: ORIGIN } })
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  it('answers 401 to a cross-site request with the cookie alone, unless its origin is listed', async () => {
    const post = (name: string, headers: object, token?: null) =>
      call('POST', '/api/modulo', nuevo(name), { headers, ...(token === null && { token }) })
    const site = { 'sec-fetch-site': 'cross-site' }
    const bearer = { ...site, authorization: `Bearer ${adminToken}` }

    const other = { ...site, origin: 'https://otra.ejemplo.com' }
    expect(await post('a', other)).toMatchObject(UNAUTHENTICATED)
    expect(await post('a', site)).toMatchObject({ status: 401 })
    for (const authorization of ['Basic eDp5', `No${bearer.authorization}`]) {
      expect(await post('a', { ...site, authorization })).toMatchObject({ status: 401 })
      expect(
        await call('GET', '/api/perfil', undefined, { headers: { authorization } }),
      ).toMatchObject({
        status: 200,
      })
    }
    // A Bearer header takes precedence over the cookie even when it is malformed.
    for (const authorization of ['Bearer', 'Bearer x', `${bearer.authorization} x`]) {
      expect(await post('a', { authorization })).toMatchObject({ status: 401 })
    }
    expect(await post('b', { ...site, origin: ORIGIN })).toMatchObject({ status: 200 })
    expect(await post('c', bearer, null)).toMatchObject({ status: 200 })
    const spaced = { ...site, authorization: `bearer  ${adminToken}` }
    expect(await post('e', spaced, null)).toMatchObject({ status: 200 })
    expect(await post('d', { 'sec-fetch-site': 'same-site' })).toMatchObject({ status: 200 })
    const logout = await call('POST', '/api/auth/logout', undefined, { headers: site })
    expect(logout).toMatchObject({ status: 401 })
    expect(await post('f', {})).toMatchObject({ status: 200 })
    for (const method of ['GET', 'HEAD'] as const) {
      const read = (options: object) => call(method, '/api/perfil', undefined, options)
      expect(await read({ headers: site })).toMatchObject({ status: 401 })
      expect(await read({ headers: { ...site, origin: ORIGIN } })).toMatchObject({ status: 200 })
      const { headers } = await read({ token: null })
      const length = Buffer.byteLength(JSON.stringify(UNAUTHENTICATED.body))
      expect(Number(headers['content-length'])).toBe(length)
    }
  })
})
