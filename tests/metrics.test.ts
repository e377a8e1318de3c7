import { expect, it } from 'vitest'
import { ADMIN, testApp } from './app.js'

const { app, call, config } = await testApp({ METRICS: 'true', DATABASE_POOL_MAX: '2' })

/** The value of each line, by name and labels. */
async function read() {
  const { statusCode, headers, body } = await app.inject('/metrics')
  expect(statusCode).toBe(200)
  expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
  const lines = body.split('\n').filter((line) => line && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), line.split(' ').at(-1)]),
  )
}
const count = (labels: string) => `http_request_duration_seconds_count{${labels}}`

it('is not there unless it is asked for', async () => {
  const without = await testApp({ METRICS: 'false', DATABASE_URL: config.databaseUrl })
  expect((await without.call('GET', '/metrics')).status).toBe(404)
})

it('is not in the document that clients are made from', async () => {
  const { body } = await call('GET', '/docs/json')
  expect(Object.keys(body.paths)).toContain('/api/perfil')
  expect(Object.keys(body.paths)).not.toContain('/metrics')
})

it('counts requests by route and status, never by path', async () => {
  await call('GET', '/api/usuario/1')
  await call('GET', '/api/usuario/999')
  await call('GET', '/api/usuario/1', undefined, { token: null })
  await call('GET', '/api/lo-que-sea')
  const metrics = await read()
  const usuario = 'method="GET",route="/api/usuario/:id"'
  expect(metrics.get(count(`${usuario},status="200"`))).toBe('1')
  expect(metrics.get(count(`${usuario},status="404"`))).toBe('1')
  expect(metrics.get(count(`${usuario},status="401"`))).toBe('1')
  expect(metrics.get(count('method="GET",route="none",status="404"'))).toBe('1')
  expect([...metrics.keys()].join('\n')).not.toMatch(/lo-que-sea|999/)
})

it('tells what the pool has to do', async () => {
  const pool = ['running', 'waiting'].map((state) => `llavero_database_queries{state="${state}"}`)
  const sleeping = Array.from({ length: 5 }, async () => app.sql`select pg_sleep(0.3)`)
  await new Promise((done) => setTimeout(done, 150))
  const busy = await read()
  expect(pool.map((name) => busy.get(name))).toEqual(['2', '3'])
  expect(busy.get('llavero_database_pool_max')).toBe('2')
  await Promise.all(sleeping)
  const idle = await read()
  expect(pool.map((name) => idle.get(name))).toEqual(['0', '0'])
})

it('tells how many hashes wait', async () => {
  const hashes = Array.from({ length: 6 }, () => app.passwords.hash(ADMIN.strPwd))
  expect(Number((await read()).get('llavero_password_hashes_waiting'))).toBeGreaterThanOrEqual(2)
  await Promise.all(hashes)
  expect((await read()).get('llavero_password_hashes_waiting')).toBe('0')
})

it('says what each of its own figures is', async () => {
  const { body } = await app.inject('/metrics')
  const own = /^# (?:HELP|TYPE) (?:llavero|http)_/
  expect(body.split('\n').filter((line) => own.test(line))).toEqual([
    '# HELP http_request_duration_seconds From the head of a request to the end of its answer, by route and status',
    '# TYPE http_request_duration_seconds histogram',
    '# HELP llavero_database_queries Queries without an answer: as many as run at most, and those that wait',
    '# TYPE llavero_database_queries gauge',
    '# HELP llavero_database_pool_max Connections that the pool may have (DATABASE_POOL_MAX)',
    '# TYPE llavero_database_pool_max gauge',
    '# HELP llavero_password_hashes_waiting Password hashes that wait for a thread',
    '# TYPE llavero_password_hashes_waiting gauge',
  ])
})

it('measures requests in seconds', async () => {
  const before = await read()
  await call('POST', '/api/auth/login', { ...ADMIN, captchaToken: 'humano' })
  const after = await read()
  const login = 'method="POST",route="/api/auth/login",status="200"'
  const sum = (metrics: typeof before) =>
    Number(metrics.get(`http_request_duration_seconds_sum{${login}}`))
  // A hash takes some hundredths of a second.
  expect(sum(after) - sum(before)).toBeGreaterThan(0.01)
  expect(sum(after) - sum(before)).toBeLessThan(10)
  const buckets = [...after.keys()].filter((key) => key.includes(login) && key.includes('le='))
  expect(buckets.map((key) => /le="([^"]+)"/.exec(key)?.[1])).toEqual(
    '0.002 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 +Inf'.split(' '),
  )
})

it('tells of the process and its event loop', async () => {
  const metrics = await read()
  for (const name of ['process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds']) {
    expect(Number(metrics.get(name))).toBeGreaterThan(0)
  }
})
