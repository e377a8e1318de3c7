import dns from 'node:dns'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { BUSY } from './answers.js'
import { testApp } from './app.js'
import { startHangingCaptcha } from './captcha.js'
import { during } from './during.js'
import { addSessions } from './users.js'

const MIB = 1024 * 1024
const REFUSED = { ...BUSY, headers: { 'retry-after': '5' } }
/** How many captcha tokens the service verifies at a time. */
const MAX_PENDING = 256

const captcha = await startHangingCaptcha()
const service = await testApp({ CAPTCHA_VERIFY_URL: captcha.url })
const { app, call, adminToken } = service
const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
const list = (token = adminToken) => call('GET', '/api/modulo/list', undefined, { token })
/**
 * Sessions of different users, because the bodies and requests of one user have limits of their
 * own.
 */
const [one = '', other = '', ...tokens] = (await addSessions(service, 9)).map(({ token }) => token)

it('has shorter time limits than read_body of deploy/Caddyfile, after which Caddy answers an empty 200', async () => {
  const caddyfile = await readFile('deploy/Caddyfile', 'utf8')
  const secondsOf = (option: string) => Number(new RegExp(`${option} (\\d+)s`).exec(caddyfile)?.[1])
  // The service checks its time limits once a second.
  const givenUpAt = secondsOf('read_header') + app.server.requestTimeout / 1000 + 1
  expect(secondsOf('read_body')).toBeGreaterThan(givenUpAt)
})

it('has the time limits of docs/configuration.md', async () => {
  const table = await readFile('docs/configuration.md', 'utf8')
  const { headersTimeout, requestTimeout, keepAliveTimeout } = app.server
  expect(table).toContain(`| Head of a request | ${headersTimeout / 1000} s to arrive`)
  expect(table).toMatch(new RegExp(`A whole request, .*\\| ${requestTimeout / 1000} s to arrive`))
  expect(table).toContain(`| An idle connection | ${keepAliveTimeout / 1000} s |`)
})

it('has one server, also if `localhost` has an address of IPv6 as well', async () => {
  const { lookup } = dns
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]
  const mock = vi.spyOn(dns, 'lookup').mockImplementation(((host: string, ...rest: any[]) => {
    if (rest[0].all) rest[1](null, addresses)
    else Reflect.apply(lookup, dns, [host, ...rest])
  }) as never)
  onTestFinished(() => mock.mockRestore())
  const { app } = await testApp({ DATABASE_URL: service.config.DATABASE_URL.url })
  await app.listen({ host: 'localhost', port: 0 })
  expect(app.addresses()).toHaveLength(1)
})

/** Opens a connection and sends `content`. */
function open(content: string) {
  const client = connect(Number(port), '127.0.0.1')
  client.on('error', () => {})
  client.write(content)
  return client
}

/** Sends the head of a request with a JSON body of `length` bytes, and the first `sent` of them. */
function begin(request: string, token: string, length: number, sent: number) {
  const client = open(
    `${request} HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${token}\r\nConnection: close\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`,
  )
  client.write(Buffer.alloc(sent, ' '))
  return client
}

/** Resolves when the service has closed the connection, even if it has reset it. */
function untilClosed(client: Socket) {
  client.resume()
  return new Promise((resolve) => client.once('close', resolve))
}

/** The open connections of the service. */
const connections = new Set<Socket>()
app.server.on('connection', (connection) => {
  connections.add(connection)
  connection.once('close', () => connections.delete(connection))
})

/**
 * Closes the connections of these clients, and waits until the service has closed all of its own.
 */
async function disconnect(clients: Socket[]) {
  for (const client of clients) client.destroy()
  await expect.poll(() => connections.size, { timeout: 10_000 }).toBe(0)
}

/** Returns how many bytes the service has read from its open connections. */
const countBytes = () => [...connections].reduce((sum, { bytesRead }) => sum + bytesRead, 0)

const LARGE = 10 * MIB
const beginUpload = (token: string, sent: number) => begin('POST /api/usuario', token, LARGE, sent)
/**
 * Sends a body without its last byte for each token, and waits until the service has read them all.
 */
async function holdBodies(tokens: string[]) {
  const clients = tokens.map((token) => beginUpload(token, LARGE - 1))
  await expect.poll(countBytes, { timeout: 10_000 }).toBeGreaterThan(clients.length * LARGE)
  return clients
}
/** Sends a body of nothing but spaces. The service answers 400 to it when it has read it. */
const upload = (token: string) => text(beginUpload(token, LARGE))
const READ = /^HTTP\/1.1 400 /
const IS_REFUSED = /^HTTP\/1.1 503 .*retry-after: 5\r\n/s

describe('bodies in memory', () => {
  it('may have 64 MiB in total; the next large one gets 503, and small ones are accepted', async () => {
    const slow = await holdBodies(tokens.slice(0, 6))
    // If the first 16 KiB of each body counted, there would be no room for a small one now.
    slow.push(beginUpload(tokens[6] ?? '', 4 * MIB))
    await expect.poll(countBytes, { timeout: 10_000 }).toBeGreaterThan(6 * LARGE + 4 * MIB)
    expect(await upload(one)).toMatch(IS_REFUSED)
    expect(await list()).toMatchObject({ status: 200 })
    expect(await text(begin('PUT /api/perfil/999', one, 16_000, 16_000))).toMatch(READ)
    const login = begin('POST /api/auth/login', '', 16_000, 16_000)
    expect(await text(login)).toMatch(READ)

    await disconnect(slow)
    expect(await upload(one)).toMatch(READ)
  })

  it('may have 32 MiB of one user, who gets 503 for the next, and another user is not affected', async () => {
    const slow = await holdBodies([one, one, one])
    expect(await upload(one)).toMatch(IS_REFUSED)
    const answers = await Promise.all([upload(other), upload(other), upload(other)])
    for (const answer of answers) expect(answer).toMatch(READ)
    await disconnect(slow)
    expect(await upload(one)).toMatch(READ)
  })

  it('that arrive slowly hold up nobody', async () => {
    // A user has at most 5 of the 10 connections to the database.
    const clients = Array.from({ length: 20 }, () =>
      begin('PUT /api/perfil/999', one, 16_000, 15_000),
    )
    await expect.poll(countBytes).toBeGreaterThan(clients.length * 15_000)
    for (const token of [one, other]) expect(await list(token)).toMatchObject({ status: 200 })
    const answers = clients.map((client) => text(client))
    for (const client of clients) client.write(Buffer.alloc(1000, ' '))
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(READ)
  })
})

it('refuses requests at once while the event loop is late, and answers health checks', async () => {
  // The delay is the mean of all turns of the event loop within about a second.
  for (let turn = 0; turn < 3; turn += 1) {
    const begin = performance.now()
    while (performance.now() - begin < 1500);
    await sleep(1)
  }
  const [answer, health] = await Promise.all([list(), call('GET', '/health/live')])
  expect(answer).toMatchObject(REFUSED)
  expect(health.status).toBe(200)
  await expect.poll(async () => (await list()).status, { timeout: 10_000 }).toBe(200)
})

it('answers lists and refuses further logins with 503 while 256 logins wait for the captcha service', async () => {
  const body = { strNombreUsuario: 'raiz', strPwd: 'otra clave', captchaToken: 'x' }
  const login = () => call('POST', '/api/auth/login', body, { token: null })
  captcha.isHanging = true
  const logins = Array.from({ length: MAX_PENDING + 40 }, login)
  await expect.poll(() => captcha.waiting.length).toBe(MAX_PENDING)
  expect(await list()).toMatchObject({ status: 200 })
  expect(await login()).toMatchObject(REFUSED)

  // The captcha service has 5 s to answer. If the list had waited for a login, it would be too
  // late.
  captcha.isHanging = false
  for (const response of captcha.waiting) response.end('{"success":false}')
  const statuses = (await Promise.all(logins)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 400)).toHaveLength(MAX_PENDING)
  expect((await login()).status).toBe(401)
})

describe('requests on one connection that do not wait for the answers', () => {
  const getList = `GET /api/modulo/list HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${adminToken}\r\n`

  it('are answered if there are never more than 16 of them, however fast the next ones come', async () => {
    // In a thread of its own, the client sends while the service is still reading.
    const client = new Worker(
      `
        const { workerData: port, parentPort } = require('node:worker_threads')
        const head = 'POST /x HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 16384\\r\\n\\r\\n'
        const request = head + 'x'.repeat(16384)
        const socket = require('node:net').connect(port, '127.0.0.1')
        let received = ''
        let answers = 0
        socket.write(request.repeat(16))
        socket.on('data', (bytes) => {
          received += bytes
          const before = answers
          answers = received.split('HTTP/1.1 404').length - 1
          if (answers < 500) socket.write(request.repeat(answers - before))
          else socket.destroy()
        })
        socket.on('error', () => {})
        socket.on('close', () => parentPort.postMessage(answers))
      `,
      { eval: true, workerData: port },
    )
    const [answers] = await once(client, 'message')
    expect(answers).toBeGreaterThanOrEqual(500)
  })

  it('are not carried out beyond the 16th', async () => {
    const { body } = await call('POST', '/api/modulo', { strNombreModulo: 'SOBRANTE' })
    const remove = getList.replace('GET /api/modulo/list', `DELETE /api/modulo/${body.data.id}`)
    await service.sql.begin(async (tx) => {
      // The lists wait.
      await tx`lock table modulo`
      const client = open('')
      for (let request = 0; request < 16; request += 1) {
        client.write(`${getList}\r\n`)
        await sleep(5)
      }
      client.write(`${remove}\r\n`)
      await untilClosed(client)
    })
    expect((await list()).body.data).toContainEqual(body.data)
  })

  it.each([
    ['without a body', 'GET /api/modulo/list HTTP/1.1\r\nHost: x\r\n\r\n', 17],
    // The service answers the first request before Node reads the next one.
    ['with a body', 'GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx', 18],
  ])('close the connection if there are 2,000 of them, %s', async (_, request, closing) => {
    const emitted = vi.fn()
    app.server.on('request', emitted)
    onTestFinished(() => void app.server.off('request', emitted))
    const clients = Array.from({ length: 5 }, () => open(request.repeat(2000)))
    await Promise.all(clients.map(untilClosed))
    expect(emitted).toHaveBeenCalledTimes(5 * closing)
  })
})

/** Returns the JSON of an object with `length` texts of 3 MiB in total. */
const texts = (length: number) => {
  const text = 'x'.repeat((3 * MIB) / length)
  const members = Array.from({ length }, (_, n) => `"${n}":"${text}"`)
  return `{${members.join()}}`
}

/**
 * Sends a body. While other processes delay the event loop by more than 1 s, the service refuses
 * requests; then the body is sent again.
 */
async function postUntilAccepted(url: string, body: string) {
  const headers = { 'content-type': 'application/json' }
  const answer = await call('POST', url, body, { headers })
  if (answer.status === 503) return postUntilAccepted(url, body)
  return answer
}

const MATRIX = '/api/permisos/guardar-matriz'
const USER = '/api/usuario'
const ENTRIES = Array(69_000).fill('{"idModulo":9}').join()
const KEYS = Array.from({ length: MIB }, (_, n) => `"${n.toString(36)}":1`).join()

it.each([
  ['a matrix with very many entries', MATRIX, `{"idPerfil":1,"permisos":[${ENTRIES}]}`, 500],
  ['very many keys', USER, `{${KEYS},"__proto__":1}`, 500],
  ['very deep lists', USER, `{"a":"",${'['.repeat(10 * MIB - 9)}"`, 500],
  ['a long text', USER, `{"strNombreUsuario":"${'x'.repeat(9 * MIB)}"}`, 400],
  // A body above 1 MiB may have 1,000 values, and the object around the texts is one of them. The
  // service estimates their number from the commas, the opening brackets and the opening braces.
  ['1,000 values', USER, texts(999), 400],
  ['1,001 values', USER, texts(1000), 500],
  // Among bodies without commas and brackets, this one takes a parser the longest.
  ['a long text of escapes', USER, `"${'\\u00e1'.repeat((10 * MIB) / 6 - 1)}"`, 400],
])('answers other requests while it reads a body with %s', async (_, url, body, status) => {
  const answered = postUntilAccepted(url, body)
  const delays = await during(answered, async () => {
    const begin = process.cpuUsage()
    await fetch(`http://127.0.0.1:${port}/health/live`)
    const { user, system } = process.cpuUsage(begin)
    return (user + system) / 1000
  })
  expect(await answered).toMatchObject({ status })
  // The delays are milliseconds of processor time, so that other processes do not count. About
  // 300 are usual; a parser that reads the whole of such a body would need seconds.
  expect(Math.max(...delays)).toBeLessThan(1000)
})
