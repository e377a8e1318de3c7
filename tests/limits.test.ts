import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { expect, it } from 'vitest'
import { BUSY } from './answers.js'
import { testApp } from './app.js'
import { during } from './during.js'
import { receiveRequests } from './events.js'
import { addSessions } from './sessions.js'

const MAX_IN_FLIGHT = 400
const REFUSED = { ...BUSY, headers: { 'retry-after': '5' } }

const service = await testApp()
const { app, config, call, adminToken } = service
const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
const bearer = { headers: { authorization: `Bearer ${adminToken}` } }
const list = (token = adminToken) => call('GET', '/api/modulo/list', undefined, { token })
/** A session for each request in flight, because the requests of one user would wait. */
const tokens = (await addSessions(service, MAX_IN_FLIGHT)).map(({ token }) => token)

/** Calls `meanwhile` while a lock makes every other statement on the table wait. */
async function withLock<T>(table: string, meanwhile: () => Promise<T>) {
  const sql = postgres(config.DATABASE_URL.url, { max: 1, onnotice: () => {} })
  const result = await sql.begin(async (sql) => {
    await sql`lock table ${sql(table)}`
    return meanwhile()
  })
  await sql.end()
  return result
}

/** Opens a connection and sends the first lines of a request. */
function open(head: string, token = adminToken) {
  const client = connect(Number(port), '127.0.0.1')
  client.on('error', () => {})
  client.write(`${head}\r\nHost: x\r\nCookie: auth_token=${token}\r\nConnection: close\r\n`)
  return client
}

it('answers 503 with Retry-After above 400 requests in flight, and still answers health', async () => {
  for (let round = 0; round < 2; round++) {
    const { accepted, refused } = await withLock('modulo', async () => {
      const accepted: ReturnType<typeof list>[] = []
      for (const token of tokens) {
        accepted.push(list(token))
        // If all were sent at once, the event loop of a busy machine could lag by more than 1 s, and
        // the service would refuse requests for that reason.
        if (accepted.length % 20 === 0) await sleep(1)
      }
      // The service delays the answer to a refused request by 1 s. The test releases the lock
      // before this answer comes. Otherwise the statements that wait for the lock could time out.
      const refused = list()
      expect(await call('GET', '/health/live')).toMatchObject({ status: 200 })
      return { accepted, refused }
    })
    expect(await refused).toMatchObject(REFUSED)
    const answers = await Promise.all(accepted)
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  }
})

it('accepts requests again once the clients of the requests in flight have disconnected', async () => {
  await withLock('modulo', async () => {
    const received = receiveRequests(app.server, tokens.length)
    const clients = tokens.map((token) => open('GET /api/modulo/list HTTP/1.1', token))
    for (const client of clients) client.write('\r\n')
    await received
    await sleep(500)
    for (const client of clients) client.destroy()
  })
  await expect.poll(list, { timeout: 5000 }).toMatchObject({ status: 200 })
})

it('does not count a request as in flight while its body is still missing', async () => {
  const received = receiveRequests(app.server, tokens.length + 1)
  const clients = [...tokens, adminToken].map((token) => {
    const client = open('PUT /api/perfil/999 HTTP/1.1', token)
    client.write('Content-Type: application/json\r\nContent-Length: 2\r\n\r\n')
    return client
  })
  await received
  // Until the service has looked up the session of such a request, the request counts as in flight.
  await expect.poll(list).toMatchObject({ status: 200 })
  const answers = clients.map((client) => text(client))
  for (const client of clients) client.write('{}')
  for (const answer of await Promise.all(answers)) {
    // If more than 400 of the bodies are being handled at once, the others get a 503.
    expect(answer).toMatch(/^HTTP\/1.1 (400|503) /)
  }
})

it('accepts large bodies of 64 MiB in total, and answers 503 to the next', async () => {
  const length = 10 * 1024 * 1024
  const begin = (token = adminToken) => {
    const client = open('POST /api/usuario HTTP/1.1', token)
    client.write(`Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`)
    return client
  }
  // Bodies of disconnected clients must not count, no matter when the clients disconnected.
  for (let n = 0; n < 60; n += 1) {
    const gone = begin()
    await sleep(n % 6)
    gone.destroy()
  }
  const send = () => {
    const client = begin()
    client.write(Buffer.alloc(length, ' '))
    return text(client)
  }
  const clients = tokens.slice(0, 6).map(begin)
  await Promise.all(clients.map((client) => once(client, 'connect')))
  // The service handles requests in the order in which they arrive. When it has answered these three,
  // it has counted the bodies above.
  for (let n = 0; n < 3; n += 1) await fetch(`http://127.0.0.1:${port}/api/modulo/list`, bearer)
  expect(await send()).toMatch(/^HTTP\/1.1 503 .*retry-after: 5\r\n/s)
  expect(await list()).toMatchObject({ status: 200 })
  for (const client of clients) client.destroy()
  // The service answers 400 to a body that it has read, because a body of nothing but spaces is not
  // JSON.
  await expect.poll(send, { timeout: 10_000 }).toMatch(/^HTTP\/1.1 400 /)
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
const MIB = 1024 * 1024

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
  ['POST', '/api/usuario', `{"a":${'['.repeat(10 * MIB - 5)}`, 500],
  ['POST', '/api/usuario', `{"a":"",${'['.repeat(10 * MIB - 9)}"`, 500],
  ['POST', '/api/usuario', `[${'{},'.repeat((10 * MIB) / 3 - 10)}{}]`, 500],
  ['POST', '/api/usuario', `{"strNombreUsuario":"${'x'.repeat(9 * MIB)}"}`, 400],
  // A body above 1 MiB may have 1,000 values, and the object around the texts is one of them. The
  // service estimates their number from the commas, the opening brackets and the opening braces.
  ['POST', '/api/usuario', texts(2), 400],
  ['POST', '/api/usuario', texts(999), 400],
  ['POST', '/api/usuario', texts(1000), 500],
  // Among bodies without commas and brackets, these take a parser the longest.
  ['POST', '/api/usuario', `"${'\\u00e1'.repeat((10 * MIB) / 6 - 1)}"`, 400],
  ['POST', '/api/usuario', '1'.repeat(10 * MIB), 400],
  ['POST', '/api/usuario', ' '.repeat(10 * MIB), 400],
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
