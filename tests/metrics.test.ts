import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { ADMIN, testApp } from './app.js'
import { usuario } from './endpoints.js'
import { holdStatements } from './hold.js'

const { app, call, config, passwords, pool, sql } = await testApp(
  { METRICS: 'true', DATABASE_POOL_MAX: '2' },
  { cheapHashes: false },
)

/** Reads the metrics; returns the values by name and labels. */
async function read() {
  const { statusCode, headers, body } = await app.inject('/metrics')
  expect(statusCode).toBe(200)
  expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
  const lines = body.split('\n').filter((line) => line && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), line.split(' ').at(-1)]),
  )
}

it('answers 404 on /metrics with METRICS=false', async () => {
  const without = await testApp({ METRICS: 'false', DATABASE_URL: config.DATABASE_URL.url })
  expect((await without.call('GET', '/metrics')).status).toBe(404)
})

it('counts requests by route, status and outcome, not by path', async () => {
  await call('GET', '/api/usuario/1')
  await call('GET', '/api/usuario/999')
  await call('GET', '/api/usuario/1', undefined, { token: null })
  await call('GET', '/api/lo-que-sea')
  // The last two fail with the status 200.
  for (const strNombreModulo of ['ventas', 'ventas', '']) {
    await call('POST', '/api/modulo', { strNombreModulo })
  }
  const metrics = await read()
  for (const labels of [
    'method="GET",route="/api/usuario/:id",status="200",outcome="done"',
    'method="GET",route="/api/usuario/:id",status="404",outcome="notFound"',
    'method="GET",route="/api/usuario/:id",status="401",outcome="unauthenticated"',
    'method="GET",route="none",status="404",outcome="notFound"',
    'method="POST",route="/api/modulo",status="200",outcome="done"',
    'method="POST",route="/api/modulo",status="200",outcome="conflict"',
    'method="POST",route="/api/modulo",status="200",outcome="invalid"',
  ]) {
    expect(metrics.get(`http_request_duration_seconds_count{${labels}}`), labels).toBe('1')
  }
  expect([...metrics.keys()].join('\n')).not.toMatch(/lo-que-sea|999/)
})

it('counts the running and the waiting queries of the pool', async () => {
  async function figures() {
    const metrics = await read()
    return ['running', 'waiting'].map((state) =>
      metrics.get(`llavero_database_queries{state="${state}"}`),
    )
  }
  await holdStatements(pool, sql, 5, async () => {
    await expect.poll(figures, { interval: 5 }).toEqual(['2', '3'])
  })
  expect(await figures()).toEqual(['0', '0'])
})

it('counts the waiting password hashes', async () => {
  const hashes = Array.from({ length: 4 }, () => passwords.hash(ADMIN.strPwd))
  expect(Number((await read()).get('llavero_password_hashes_waiting'))).toBeGreaterThanOrEqual(2)
  await Promise.all(hashes)
  expect((await read()).get('llavero_password_hashes_waiting')).toBe('0')
})

it('measures requests in seconds', async () => {
  await call('POST', '/api/usuario', usuario('medida'))
  const metrics = await read()
  const created = 'method="POST",route="/api/usuario",status="200",outcome="done"'
  // The answer takes at least as long as the password's hash, some hundredths of a second.
  const sum = Number(metrics.get(`http_request_duration_seconds_sum{${created}}`))
  expect(sum).toBeGreaterThan(0.01)
  expect(sum).toBeLessThan(10)
})

it('names the release in llavero_build_info', async () => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'))
  expect((await read()).get(`llavero_build_info{version="${version}"}`)).toBe('1')
})

it('has metrics of the process and its event loop', async () => {
  const metrics = await read()
  for (const name of ['process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds']) {
    expect(Number(metrics.get(name))).toBeGreaterThan(0)
  }
})
