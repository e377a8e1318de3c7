import { execSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { expect, it } from 'vitest'
import { testApp } from './app.js'

const { app, config, adminToken, readLog } = await testApp()
const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))

const request = (line: string, body = '', more = '') =>
  `${line} HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${adminToken}\r\n${more}` +
  (body ? `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n` : '') +
  `\r\n${body}`

const hasProc = existsSync('/proc/self/fd')
const PERFIL = '{"strNombrePerfil":"x","bitAdministrador":true}'
const CLOSE = 'Connection: close\r\n'

/** Sends all of it at once. */
function send(...requests: string[]) {
  const client = connect(Number(port), '127.0.0.1')
  client.on('error', () => {})
  client.write(requests.join(''))
  return client
}

/** While nothing can be written. */
async function locked(work: () => Promise<void>) {
  const sql = postgres(config.databaseUrl, { max: 1, onnotice: () => {} })
  await sql.begin(async (sql) => {
    await sql`lock table usuario in exclusive mode`
    await work()
    await sql`rollback`
  })
  await sql.end()
}

const statuses = (answers: string) => answers.match(/HTTP\/1.1 \d+/g)

it('some requests that are sent at once are answered in their order', async () => {
  const ways = ['/health/live', '/nada', '/api/perfil', '/docs/json']
  const requests = ways.map((path) => request(`GET ${path}`))
  const client = send(...requests, ...requests, request('GET /nada', '', CLOSE))
  const expected = [200, 404, 200, 200, 200, 404, 200, 200, 404]
  expect(statuses(await text(client))).toEqual(expected.map((status) => `HTTP/1.1 ${status}`))
})

it('sixteen of them may wait for their answers, and one more ends the connection', async () => {
  const put = request('PUT /api/perfil/997', PERFIL)
  const puts = (count: number) => Array.from({ length: count }, () => put)
  let answers = Promise.resolve('')
  let isEnded = false
  await locked(async () => {
    answers = text(send(...puts(15), request('PUT /api/perfil/997', PERFIL, CLOSE)))
    const client = send(...puts(20)).once('close', () => {
      isEnded = true
    })
    expect(await text(client)).toBe('')
  })
  expect(isEnded).toBe(true)
  expect(readLog().match(/"ip":"127.0.0.1","msg":"too many requests in line"/g)).toHaveLength(1)
  const expected = Array.from({ length: 16 }, () => 'HTTP/1.1 404')
  expect(statuses(await answers)).toEqual(expected)
})

it('any number may follow one another', async () => {
  const client = send()
  for (let count = 1; count <= 40; count += 1) {
    client.write(request('GET /health/live'))
    const [answer] = await once(client, 'data')
    expect(statuses(String(answer))).toEqual(['HTTP/1.1 200'])
  }
  client.destroy()
})

it.runIf(hasProc)('hundreds of them leave nothing behind', async () => {
  const descriptors = () => readdirSync('/proc/self/fd').length
  const before = descriptors()
  const bundle = request('GET /docs/static/swagger-ui-bundle.js')
  for (const count of [16, 500]) {
    const client = send(...Array.from({ length: count }, () => bundle))
    client.pause()
    await sleep(300)
    client.destroy()
  }
  await expect.poll(descriptors, { timeout: 5000 }).toBeLessThan(before + 5)
})

it('those whose client has gone are logged all the same', async () => {
  await locked(async () => {
    const client = send(
      request('PUT /api/perfil/1', PERFIL),
      request('PUT /api/perfil/998', PERFIL),
      request('PUT /api/perfil/999', PERFIL),
    )
    await sleep(300)
    client.destroy()
    await sleep(100)
  })
  const ends = () =>
    readLog()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ msg, path }) => msg === 'request' && /perfil\/(1|998|999)$/.test(path))
      .map(({ path, status, aborted }) => ({ path, status, aborted }))
      .toSorted((a, b) => a.path.localeCompare(b.path))
  await expect.poll(ends).toHaveLength(3)
  expect(ends()).toEqual([
    { path: '/api/perfil/1', status: expect.any(Number), aborted: true },
    { path: '/api/perfil/998', status: expect.any(Number), aborted: true },
    { path: '/api/perfil/999', status: expect.any(Number), aborted: true },
  ])
})

it('what is no request gets no answer that another one waits for', async () => {
  let answers = Promise.resolve('')
  await locked(async () => {
    const client = send(request('PUT /api/perfil/1', PERFIL))
    answers = text(client)
    await sleep(300)
    client.write('nada de HTTP\r\n\r\n')
    await sleep(100)
  })
  expect(await answers).toBe('')
  expect(statuses(await text(send('nada de HTTP\r\n\r\n')))).toEqual(['HTTP/1.1 400'])
  const torn = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n'
  const chunk = `${request('PUT /api/perfil/1', '', torn)}zz\r\n`
  expect(statuses(await text(send(chunk)))).toEqual(['HTTP/1.1 400'])
})

it('what is no request is not answered amid the answer to another one', async () => {
  const bundle = 'GET /docs/static/swagger-ui-bundle.js'
  const two = await text(send(request(bundle), request(bundle, '', CLOSE)))
  const whole = two.lastIndexOf('HTTP/1.1')
  const unending = request(bundle, '', 'Transfer-Encoding: chunked\r\n')
  // The buffers of a connection hold some of these answers, and a part of one more.
  const clients = Array.from({ length: 6 }, (_, before) =>
    send(...Array.from({ length: before }, () => request(bundle)), unending).pause(),
  )
  await sleep(500)
  for (const client of clients) client.write('zz\r\n')
  await sleep(300)
  for (const answers of await Promise.all(clients.map((client) => text(client)))) {
    const [before = '', ...after] = answers.split('HTTP/1.1 400')
    if (after.length > 0) expect(before.length % whole).toBe(0)
  }
})

it('what is sent to nowhere is not looked at', async () => {
  const client = send(request('POST /nada', '{', CLOSE))
  expect(statuses(await text(client))).toEqual(['HTTP/1.1 404'])
})

it('the documentation has so many answers under way, and no more', async () => {
  const bundle = 'GET /docs/static/swagger-ui-bundle.js'
  const last = request(bundle, '', CLOSE)
  const all = [...Array.from({ length: 15 }, () => request(bundle)), last]
  const readers = Array.from({ length: 10 }, () => send(...all).pause())
  await sleep(500)
  const answers = await Promise.all(readers.map((reader) => text(reader)))
  const seen = answers.flatMap((answer) => statuses(answer) ?? [])
  expect(seen).toHaveLength(160)
  expect(seen.filter((status) => status === 'HTTP/1.1 503')).toHaveLength(60)
  const after = await fetch(`http://127.0.0.1:${port}/docs/json`)
  expect(after.status).toBe(200)
})

it.runIf(hasProc)('there are descriptors left when all connections are taken', () => {
  const descriptors = Number(execSync('ulimit -n', { encoding: 'utf8' }))
  expect(app.server.maxConnections).toBe(Math.floor((descriptors - 200) / 2))
})
