import dns from 'node:dns'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { buildApp } from '../src/app.js'
import { BUSY } from './answers.js'
import { testApp } from './app.js'
import { startHangingCaptcha } from './captcha.js'
import { during } from './during.js'
import { receiveRequests } from './events.js'
import { addSessions } from './sessions.js'

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
const [one = '', other = '', ...tokens] = (await addSessions(service, 300)).map(
  ({ token }) => token,
)

it('gives a request and an idle connection the time that the documents name', () => {
  expect(app.server).toMatchObject({
    headersTimeout: 15_000,
    requestTimeout: 120_000,
    keepAliveTimeout: 72_000,
  })
})

it('gives up a request before Caddy would answer it with an empty 200', async () => {
  const caddyfile = await readFile('deploy/Caddyfile', 'utf8')
  const secondsOf = (option: string) => Number(new RegExp(`${option} (\\d+)s`).exec(caddyfile)?.[1])
  // The service checks its time limits once a second.
  const givenUpAt = secondsOf('read_header') + app.server.requestTimeout / 1000 + 1
  expect(secondsOf('read_body')).toBeGreaterThan(givenUpAt)
})

it('has one server, also if `localhost` has an address of IPv6 as well', async () => {
  const [first, second] = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ] as const
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(((host: string, ...rest: any[]) => {
    const done = rest.at(-1)
    const { address, family } = host === second.address ? second : first
    if (rest[0].all) done(null, [first, second])
    else done(null, address, family)
  }) as never)
  const { app: another } = await buildApp(service.config, { write: () => {} })
  await another.listen({ host: 'localhost', port: 0 })
  lookup.mockRestore()
  const addresses = another.addresses()
  await another.close()
  expect(addresses).toMatchObject([{ address: '127.0.0.1' }])
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
    // Bodies of disconnected clients must not count, no matter when the clients disconnected.
    for (let n = 0; n < 12; n += 1) {
      const gone = beginUpload(tokens[n] ?? '', LARGE - 1)
      await sleep(n % 6)
      gone.destroy()
    }
    await expect.poll(() => upload(one), { timeout: 10_000 }).toMatch(READ)
    await disconnect([])
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
    for (let round = 0; round < 2; round += 1) {
      const answers = await Promise.all([upload(other), upload(other), upload(other)])
      for (const answer of answers) expect(answer).toMatch(READ)
    }
    await disconnect(slow)
    expect(await upload(one)).toMatch(READ)
  })

  it('that arrive slowly hold up nobody', async () => {
    const received = receiveRequests(app.server, tokens.length)
    const clients = tokens.map((token) => begin('PUT /api/perfil/999', token, 16_000, 15_000))
    await received
    for (const token of [one, other, adminToken]) {
      const since = performance.now()
      expect(await list(token)).toMatchObject({ status: 200 })
      expect(performance.now() - since).toBeLessThan(2500)
    }
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
  const logins: ReturnType<typeof login>[] = []
  for (let n = 0; n < 30; n += 1) {
    for (let m = 0; m < 10; m += 1) logins.push(login())
    const since = performance.now()
    expect(await list()).toMatchObject({ status: 200 })
    // The captcha service has 5 s to answer. A list that waited for a login would wait as long.
    expect(performance.now() - since).toBeLessThan(2500)
  }
  expect(await login()).toMatchObject(REFUSED)
  expect(captcha.waiting.length).toBeLessThanOrEqual(MAX_PENDING)

  captcha.isHanging = false
  for (const response of captcha.waiting) response.end('{"success":false}')
  const statuses = (await Promise.all(logins)).map(({ status }) => status)
  expect(statuses).toContain(400)
  // A login that reaches the captcha service only now passes, and has a wrong password.
  for (const status of statuses) expect([400, 401, 503]).toContain(status)
  expect((await login()).status).toBe(401)
})

describe('requests on one connection that do not wait for the answers', () => {
  const getList = `GET /api/modulo/list HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${adminToken}\r\n`

  it('are answered if there are 16 of them, again and again', async () => {
    const client = open('')
    let answers = ''
    client.on('data', (bytes) => {
      answers += bytes
    })
    for (let round = 1; round <= 5; round += 1) {
      client.write(`${getList}\r\n`.repeat(16))
      await expect.poll(() => answers.match(/HTTP\/1.1 200 /g)?.length).toBe(16 * round)
    }
    client.destroy()
  })

  it.each([16, 8])(
    'are answered if there are never more than %i of them, however fast the next ones come',
    async (inFlight) => {
      // In a thread of its own, the client sends while the service is still reading.
      const client = new Worker(
        `
          const { workerData, parentPort } = require('node:worker_threads')
          const { port, inFlight } = workerData
          const head = 'POST /x HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 16384\\r\\n\\r\\n'
          const request = head + 'x'.repeat(16384)
          const socket = require('node:net').connect(port, '127.0.0.1')
          let received = ''
          let answers = 0
          socket.write(request.repeat(inFlight))
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
        { eval: true, workerData: { port, inFlight } },
      )
      const [answers] = await once(client, 'message')
      expect(answers).toBeGreaterThanOrEqual(500)
    },
  )

  it('are not carried out beyond the 16th', async () => {
    const { body } = await call('POST', '/api/modulo', { strNombreModulo: 'SOBRANTE' })
    const remove = getList.replace('GET /api/modulo/list', `DELETE /api/modulo/${body.data.id}`)
    await untilClosed(open(`${`${getList}\r\n`.repeat(16)}${remove}\r\n`))
    await sleep(100)
    expect((await list()).body.data).toContainEqual(body.data)
  })

  it.each([
    ['/api/modulo/list', ''],
    ['/health/live', ''],
    ['/x', ''],
    ['/%', ''],
    // Node lets the service answer a request with a body before it reads the next one.
    ['/x', 'Content-Length: 1\r\n\r\nx'],
    ['/api/usuario', 'Content-Length: 1\r\n\r\nx'],
  ])(
    'make the service close the connection if there are 2,000 of them for %s %s',
    async (path, rest) => {
      const requests = `GET ${path} HTTP/1.1\r\nHost: x\r\n${rest || '\r\n'}`.repeat(2000)
      const emitted = vi.fn()
      app.server.on('request', emitted)
      onTestFinished(() => void app.server.off('request', emitted))
      const clients = Array.from({ length: 5 }, () => open(requests))
      const closed = Promise.all(clients.map(untilClosed))
      const health = await fetch(`http://127.0.0.1:${port}/health/live`)
      expect(health.status).toBe(200)
      await closed
      // The 17th request of each connection closes it. One more is the request for health above.
      expect(emitted).toHaveBeenCalledTimes(5 * 17 + 1)
    },
  )
})

/**
 * Returns the JSON of an object of at most `bytes` bytes with many short keys: the numbers from
 * `from` on in base 36, and `__proto__`.
 */
const keys = (bytes: number, from = 0) => {
  const all = Array.from({ length: (bytes - 20) / 10 }, (_, n) => `"${(from + n).toString(36)}":1`)
  return `{${all.join(',')},"__proto__":1}`
}

/** Returns the JSON of a matrix with these entries. */
const matrix = (permisos: string[]) => `{"idPerfil":1,"permisos":[${permisos.join()}]}`

/**
 * Returns `length` matrix entries, each as JSON. An entry has an `idModulo` and at most `bytes`
 * bytes of other keys, which differ from entry to entry, except `__proto__`.
 */
const entries = (length: number, bytes: number) =>
  Array.from({ length }, (_, n) => keys(bytes, n * bytes).replace('{', `{"idModulo":${1000 + n},`))

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
async function callUntilAccepted(method: 'POST', url: string, body: string) {
  const headers = { 'content-type': 'application/json' }
  const answer = await call(method, url, body, { headers })
  if (answer.status === 503) return callUntilAccepted(method, url, body)
  return answer
}

it.each([
  ['POST', '/api/auth/login', keys(16 * 1024), 400],
  ['POST', '/api/auth/login', '['.repeat(16 * 1024), 400],
  ['POST', '/api/permisos/guardar-matriz', `[${'{},'.repeat(MIB / 3 - 10)}{}]`, 400],
  ['POST', '/api/permisos/guardar-matriz', matrix(Array(349_000).fill('{}')), 400],
  ['POST', '/api/permisos/guardar-matriz', matrix(entries(3000, 330)), 500],
  ['POST', '/api/permisos/guardar-matriz', matrix(entries(24_000, 30)), 500],
  ['POST', '/api/permisos/guardar-matriz', '['.repeat(MIB), 400],
  ['POST', '/api/permisos/guardar-matriz', keys(MIB), 400],
  ['POST', '/api/usuario', keys(10 * MIB), 500],
  ['POST', '/api/usuario', `{"a":"",${'['.repeat(10 * MIB - 9)}"`, 500],
  ['POST', '/api/usuario', `[${'{},'.repeat((10 * MIB) / 3 - 10)}{}]`, 500],
  ['POST', '/api/usuario', `{"strNombreUsuario":"${'x'.repeat(9 * MIB)}"}`, 400],
  // A body above 1 MiB may have 1,000 values, and the object around the texts is one of them. The
  // service estimates their number from the commas, the opening brackets and the opening braces.
  ['POST', '/api/usuario', texts(999), 400],
  ['POST', '/api/usuario', texts(1000), 500],
  // Among bodies without commas and brackets, these take a parser the longest.
  ['POST', '/api/usuario', `"${'\\u00e1'.repeat((10 * MIB) / 6 - 1)}"`, 400],
  ['POST', '/api/usuario', '1'.repeat(10 * MIB), 400],
] as const)(
  'answers other requests while it reads %s %s with a body like %.30s',
  async (method, url, body, status) => {
    const answered = callUntilAccepted(method, url, body)
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
  },
)
