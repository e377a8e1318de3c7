import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import { type Answer, testApp } from './app.js'
import { startHangingCaptcha } from './captcha.js'

/** Requests that the service works on at a time. */
const UNDER_WAY = 400
const BUSY = {
  status: 503,
  body: { statusCode: 503, message: 'Servicio ocupado. Intente de nuevo más tarde.' },
  headers: { 'retry-after': '5' },
}

const captcha = await startHangingCaptcha()
const { waiting } = captcha
const test = await testApp({ CAPTCHA_VERIFY_URL: captcha.url })

/** The beginning of a request over a connection, with this token. */
const head = (line: string, token: string | null, more = '') =>
  `${line} HTTP/1.1\r\nHost: x\r\n${token ? `Cookie: auth_token=${token}\r\n` : ''}${more}\r\n`

const list = () => test.call('GET', '/api/modulo/list')
const login = () => test.call('POST', '/api/auth/login', { captchaToken: 'x' }, { token: null })

/** Calls as often as the service has places, and gives the answers once `free` has been called. */
async function fill(call: () => Promise<Answer>, free: () => unknown) {
  const calls = Array.from({ length: UNDER_WAY }, call)
  const begin = performance.now()
  const oneMore = await call()
  // Or it would be there again at once.
  expect(performance.now() - begin).toBeGreaterThan(990)
  await free()
  return { statuses: new Set((await Promise.all(calls)).map(({ status }) => status)), oneMore }
}

describe('requests that wait for the database', () => {
  /** Fills the service with requests for a table that is locked; `others` is called meanwhile. */
  async function fillWithLists(others: () => Promise<unknown>) {
    const sql = postgres(test.config.databaseUrl, { max: 1, onnotice: () => {} })
    const filled = await sql.begin(async (sql) => {
      await sql`lock table modulo`
      return fill(list, async () => {
        await others()
        await sql`rollback`
      })
    })
    await sql.end()
    return filled
  }

  it('are as many as there are places; one more is told to come again', async () => {
    for (let round = 0; round < 2; round += 1) {
      const { statuses, oneMore } = await fillWithLists(async () => {})
      expect(oneMore).toMatchObject(BUSY)
      expect(statuses).toEqual(new Set([200]))
    }
  })

  it('are no reason to hold back more than 2000', async () => {
    let answered = 0
    await fillWithLists(async () => {
      const heldBack = Array.from({ length: 2000 }, () => list().finally(() => (answered += 1)))
      expect(await list()).toMatchObject(BUSY)
      expect(answered).toBe(0)
      for (const answer of await Promise.all(heldBack)) expect(answer).toMatchObject(BUSY)
    })
  })

  it('leave health and documentation answerable', async () => {
    await fillWithLists(async () => {
      expect(await test.call('GET', '/health/live')).toMatchObject({ status: 200 })
      expect(await test.call('GET', '/docs/json')).toMatchObject({ status: 200 })
    })
  })
})

describe('requests that wait for another service', () => {
  it('are as many as there are places, and take none of the others', async () => {
    captcha.isHanging = true
    let lists: Answer | undefined
    const { statuses, oneMore } = await fill(login, async () => {
      lists = await list()
      // Which wait for passwords and images, and so have the same places.
      expect(await test.call('POST', '/api/usuario', {})).toMatchObject(BUSY)
      expect(await test.call('PUT', '/api/usuario/1', {})).toMatchObject(BUSY)
      while (waiting.length < UNDER_WAY) await sleep(10)
      captcha.isHanging = false
      for (const response of waiting.splice(0)) response.end('{"success":false}')
    })
    expect(lists).toMatchObject({ status: 200 })
    expect(oneMore).toMatchObject(BUSY)
    expect(statuses).toEqual(new Set([400]))
  })
})

describe('clients that go away', () => {
  it.each(['usuario', 'modulo'])('leave their places, waiting for %s', async (table) => {
    const { port } = await listening()
    const sql = postgres(test.config.databaseUrl, { max: 1, onnotice: () => {} })
    await sql.begin(async (sql) => {
      await sql`lock table ${sql(table)}`
      const clients = Array.from({ length: UNDER_WAY }, () => {
        const client = connect(port, '127.0.0.1')
        client.write(head('GET /api/modulo/list', test.adminToken))
        return client
      })
      await sleep(1000)
      for (const client of clients) client.destroy()
      await sleep(200)
      await sql`rollback`
    })
    await sql.end()
    await sleep(500)
    const answers = await Promise.all(Array.from({ length: UNDER_WAY }, list))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  })
})

describe('requests whose bodies are still to come', () => {
  const PERFIL = 'PUT /api/perfil/999'
  const BODY = '{"strNombrePerfil":"x","bitAdministrador":false}'
  const JSON_HEADERS = `Content-Type: application/json\r\nContent-Length: ${BODY.length}\r\n`

  /** As many clients that send the head of a request, and time for it to be looked at. */
  async function clients(count: number, token: string | null) {
    const { port } = await listening()
    const all = Array.from({ length: count }, () => {
      const client = connect(port, '127.0.0.1')
      client.on('error', () => {})
      client.write(head(PERFIL, token, `${JSON_HEADERS}Connection: close\r\n`))
      return client
    })
    await sleep(500)
    return all
  }

  it.each(['one', 'none'])('take no places, with a session: %s', async (session) => {
    const all = await clients(UNDER_WAY + 1, session === 'one' ? test.adminToken : null)
    expect(await list()).toMatchObject({ status: 200 })
    for (const client of all) client.destroy()
  })

  it('are twice as many at most once those are there', async () => {
    const all: Socket[] = []
    while (all.length < 2 * UNDER_WAY + 100) all.push(...(await clients(300, test.adminToken)))
    const sql = postgres(test.config.databaseUrl, { max: 1, onnotice: () => {} })
    const answers = all.map((client) => text(client))
    await sql.begin(async (sql) => {
      await sql`lock table usuario in exclusive mode`
      for (const client of all) client.write(BODY)
      await sleep(1500)
      await sql`rollback`
    })
    await sql.end()
    const statuses = (await Promise.all(answers)).map((answer) => answer.split(' ')[1])
    expect(statuses.filter((status) => status === '404')).toHaveLength(2 * UNDER_WAY)
    expect(statuses.filter((status) => status === '503')).toHaveLength(100)
  })
})

const listening = async () =>
  test.app.server.listening
    ? (test.app.server.address() as AddressInfo)
    : { port: Number(new URL(await test.app.listen({ host: '127.0.0.1', port: 0 })).port) }
