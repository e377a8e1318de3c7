import { connect } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import postgres from 'postgres'
import { expect, it } from 'vitest'
import { testApp } from './app.js'
import { startHangingCaptcha } from './captcha.js'

const MIB = 1024 * 1024

const captcha = await startHangingCaptcha()

const { app, config, call, adminToken, readLog } = await testApp({
  CAPTCHA_VERIFY_URL: captcha.url,
  METRICS: 'true',
})
const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))

/** Sends a request and gives its connection. */
function send(line: string, body: string) {
  const client = connect(Number(port), '127.0.0.1')
  client.write(
    `${line} HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${adminToken}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  return client
}

it('writes are carried out, logged, audited and counted', async () => {
  const sql = postgres(config.databaseUrl, { max: 1, onnotice: () => {} })
  await sql.begin(async (sql) => {
    await sql`lock table usuario in exclusive mode`
    const client = send('PUT /api/perfil/1', '{"strNombrePerfil":"otro","bitAdministrador":true}')
    await sleep(300)
    client.destroy()
    await sleep(100)
    await sql`rollback`
  })
  await sql.end()
  const lines = () =>
    readLog()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ path, route }) => path === '/api/perfil/1' || route === '/api/perfil/:id')
      .toSorted((a, b) => a.msg.localeCompare(b.msg))
  await expect.poll(lines).toHaveLength(2)
  expect(lines()).toMatchObject([
    { msg: 'audit', who: { id: 1 }, target: 1, outcome: 'done', status: 200 },
    { msg: 'request', status: 200, ip: '127.0.0.1', aborted: true },
  ])
  const { body } = await call('GET', '/api/perfil')
  expect(body.data).toMatchObject([{ id: 1, strNombrePerfil: 'otro' }])
  const metrics = await app.inject('/metrics')
  expect(metrics.body).toContain(
    'http_request_duration_seconds_count{method="PUT",route="/api/perfil/:id",status="200"} 1',
  )
})

it('nothing of what was sent is kept in memory', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc')
  const used = async () => {
    await setImmediate()
    gc()
    return process.memoryUsage().heapUsed / MIB
  }
  const body = JSON.stringify({ captchaToken: 'x', strNombreUsuario: 'x'.repeat(9 * MIB) })
  const before = await used()
  const { waiting } = captcha
  captcha.isHanging = true
  for (let count = 1; count <= 8; count += 1) {
    const client = send('POST /api/auth/login', body)
    await expect.poll(() => waiting, { timeout: 5000 }).toHaveLength(1)
    client.destroy()
    await sleep(50)
    waiting.pop()?.end('{"success":false}')
  }
  await sleep(100)
  expect((await used()) - before).toBeLessThan(4 * 9)
})
