import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { beforeEach, describe, expect, it } from 'vitest'
import { BUSY } from './answers.js'
import { testApp } from './app.js'
import { handleEvents, receiveRequests } from './events.js'
import { countWaiting } from './hold.js'
import { addSessions } from './sessions.js'

const POOL_MAX = 4
const SHARE = POOL_MAX / 2
const MAX_WAITING = 64
const LARGE = 10 * 1024 * 1024

const service = await testApp({ DATABASE_POOL_MAX: String(POOL_MAX) })
const { app, call, config } = service
const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))

/** The user who sends too many requests, and another one. Each test has new ones. */
let one: { id: number; token: string }
let other: typeof one
beforeEach(async () => {
  const [first, second] = await addSessions(service, 2)
  if (!first || !second) throw new Error('no sessions')
  one = first
  other = second
})

const list = (token: string) => call('GET', '/api/modulo/list', undefined, { token })
const ownMap = (token: string) => call('GET', '/api/permisos/mis-permisos/1', undefined, { token })

/** Returns the head of a request, with the empty line at its end. */
const head = (request: string, token: string, headers = '') =>
  `${request} HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${token}\r\n${headers}\r\n`
const getList = (token: string) => head('GET /api/modulo/list', token)
const json = (length: number) => `Content-Type: application/json\r\nContent-Length: ${length}\r\n`

function open(content: string) {
  const client = connect(Number(port), '127.0.0.1')
  client.on('error', () => {})
  client.write(content)
  return client
}

/** Opens a request of `one` that occupies a turn until `end` sends its body. */
function hold() {
  const close = 'Connection: close\r\n'
  const client = open(head('PUT /api/perfil/999', one.token, json(2) + close))
  const answer = text(client).catch(() => '')
  return {
    client,
    async end() {
      client.write('{}')
      return answer
    },
  }
}

/** Opens as many requests of `one` as the user has turns, and waits until each has its turn. */
async function holdAll() {
  const received = receiveRequests(app.server, SHARE)
  const held = Array.from({ length: SHARE }, () => hold())
  await received
  await settle()
  return held
}

/** Waits until the service has looked up the sessions of all requests that it has received. */
async function settle() {
  // Sessions are looked up in the order of the requests, in at most two statements at a time. So
  // when three further requests have been answered one after the other, the earlier look-ups have
  // ended, too, unless one statement was very slow. These requests are for the own permission map,
  // because they need no turn.
  for (let request = 0; request < 3; request += 1) {
    expect(await ownMap(one.token)).toMatchObject({ status: 200 })
  }
}

const countConnections = promisify(app.server.getConnections.bind(app.server))

/** Waits until `count` sessions of the database wait for a lock. */
const expectWaiting = (count: number) => expect.poll(() => countWaiting(service.sql)).toBe(count)

const isPending = async (answer: Promise<unknown>) =>
  Promise.race([answer.then(() => false), sleep(200, true)])

/** Expects that `one` can use all turns, and that a waiting request gets the next returned turn. */
async function expectAllTurnsFree() {
  await expect
    .poll(() => Promise.race([list(one.token), sleep(500)]))
    .toMatchObject({ status: 200 })
  const held = await holdAll()
  const last = held.pop()
  const free = list(one.token)
  await last?.end()
  expect(await free).toMatchObject({ status: 200 })
  expect(await list(one.token)).toMatchObject({ status: 200 })
  for (const each of held) expect(await each.end()).toMatch(/^HTTP\/1.1 400 /)
}

it('works on at most half as many requests of one user as the pool has connections', async () => {
  const held = await holdAll()
  const waiting = list(one.token)
  expect(await isPending(waiting)).toBe(true)
  expect(await held[0]?.end()).toMatch(/^HTTP\/1.1 400 /)
  expect(await waiting).toMatchObject({ status: 200 })
  await held[1]?.end()
})

it('counts the requests of all tokens of one user together', async () => {
  const held = await holdAll()
  const again = app.jwt.sign({ id: one.id, idPerfil: 1, nombre: 'otra', extra: 1 } as never)
  const waiting = list(again)
  expect(await isPending(waiting)).toBe(true)
  expect(await list(other.token)).toMatchObject({ status: 200 })
  for (const each of held) await each.end()
  expect(await waiting).toMatchObject({ status: 200 })
})

it('keeps the turns of a user free from requests with a token of an ended session', async () => {
  const held = await holdAll()
  await app.sql`update usuario set "versionSesion" = 1 where id = ${one.id}`
  const token = app.jwt.sign({ id: one.id, idPerfil: 1, nombre: 'otra', ver: 1 } as never)
  expect(await list(token)).toMatchObject({ status: 200 })
  for (const each of held) await each.end()
})

it('answers requests for the user’s own permission map while all turns of the user are taken', async () => {
  const held = await holdAll()
  expect(await ownMap(one.token)).toMatchObject({ status: 200 })
  for (const each of held) await each.end()
})

it('lets 64 requests of one user wait, and answers 503 to the next', async () => {
  const held = await holdAll()
  const waiting = Array.from({ length: MAX_WAITING }, () => list(one.token))
  const refused = await list(one.token)
  expect(refused).toMatchObject({ ...BUSY, headers: { 'retry-after': '5' } })
  expect(await list(other.token)).toMatchObject({ status: 200 })
  for (const each of held) await each.end()
  const answers = await Promise.all(waiting)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
})

it('answers 401 when the user became inactive while the request waited', async () => {
  const held = await holdAll()
  const waiting = list(one.token)
  expect(await isPending(waiting)).toBe(true)
  await app.sql`update usuario set "idEstadoUsuario" = false where id = ${one.id}`
  for (const each of held) await each.end()
  expect(await waiting).toMatchObject({ status: 401 })
})

describe('a turn is returned', () => {
  it.each([
    ['GET', '/api/usuario?page=0', undefined, 400],
    ['GET', '/api/usuario/999999', undefined, 404],
    ['HEAD', '/api/modulo/list', undefined, 200],
    ['DELETE', '/api/usuario/uno', undefined, 400],
    ['PUT', '/api/perfil/0', {}, 400],
    ['POST', '/api/perfil', '{', 400],
    ['POST', '/api/perfil', ' '.repeat(70_000), 413],
    ['POST', '/api/modulo', { strNombreModulo: '' }, 200],
    ['POST', '/api/usuario', { strNombreUsuario: 'x' }, 400],
  ] as const)('after %s %s with a body like %.20s', async (method, url, body, status) => {
    const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
    for (let request = 0; request < 2 * SHARE; request += 1) {
      const answer = await app.inject({
        method,
        url,
        headers: { cookie: `auth_token=${one.token}`, ...headers },
        ...(body !== undefined && { payload: body }),
      })
      expect(answer.statusCode).toBe(status)
    }
    await expectAllTurnsFree()
  })

  it('after a 401 for an ended session and after a 403 for a missing permission', async () => {
    await app.sql`update usuario set "versionSesion" = 1 where id = ${one.id}`
    for (let request = 0; request < 2 * SHARE; request += 1) {
      expect(await list(one.token)).toMatchObject({ status: 401 })
    }
    await app.sql`update usuario set "versionSesion" = 0 where id = ${one.id}`
    const [perfil] = await app.sql<{ id: number }[]>`
      insert into perfil ("strNombrePerfil") values ('nada') returning id`
    await app.sql`update usuario set "idPerfil" = ${perfil?.id ?? 0} where id = ${one.id}`
    const { token } = one
    for (let request = 0; request < 2 * SHARE; request += 1) {
      const refused = await call('POST', '/api/perfil', { strNombrePerfil: 'x' }, { token })
      expect(refused).toMatchObject({ status: 403 })
    }
    await app.sql`update usuario set "idPerfil" = 1 where id = ${one.id}`
    await expectAllTurnsFree()
  })

  it('when the client disconnects before it has sent the body', async () => {
    for (let request = 0; request < 4 * SHARE; request += 1) {
      const { client } = hold()
      await sleep(request * 5)
      client.destroy()
    }
    await expectAllTurnsFree()
  })

  it('when the client disconnects while its large body arrives or waits', async () => {
    const request = head('POST /api/usuario', one.token, json(LARGE))
    const clients = Array.from({ length: 2 * SHARE }, () => open(request))
    await sleep(200)
    for (const client of clients) client.write(Buffer.alloc(LARGE / 2, ' '))
    await sleep(200)
    for (const client of clients) client.destroy()
    await expectAllTurnsFree()
  })

  it('when the client disconnects while its request waits for a turn', async () => {
    const held = await holdAll()
    const received = receiveRequests(app.server, MAX_WAITING)
    const clients = Array.from({ length: MAX_WAITING }, () => open(getList(one.token)))
    await received
    await settle()
    const before = await countConnections()
    for (const client of clients) client.destroy()
    await expect.poll(countConnections).toBeLessThanOrEqual(Number(before) - MAX_WAITING)
    const waiting = list(one.token)
    expect(await isPending(waiting)).toBe(true)
    for (const each of held) await each.end()
    expect(await waiting).toMatchObject({ status: 200 })
    await expectAllTurnsFree()
  })

  it('when the client disconnects during the work, but only after the work is done', async () => {
    await whileLocked(async () => {
      const clients = Array.from({ length: SHARE }, () => open(write(one.token)))
      await expectWaiting(SHARE)
      for (const client of clients) client.destroy()
      await handleEvents()
      expect(await isPending(list(one.token))).toBe(true)
    })
    await expectAllTurnsFree()
  })

  it.each([
    ['GET', () => getList(one.token)],
    ['PUT', () => `${head('PUT /api/perfil/999', one.token, json(2))}{}`],
  ])(
    'when a connection closes while pipelined %s requests wait for the first answer',
    async (_, next) => {
      await whileLocked(async () => {
        const client = open(write(one.token) + next().repeat(20))
        await expectWaiting(1)
        await handleEvents()
        client.destroy()
        await handleEvents()
      })
      await expectAllTurnsFree()
    },
  )

  /** Returns a write that waits for the row that `whileLocked` has locked. */
  function write(token: string) {
    const body = JSON.stringify({ strNombrePerfil: 'otro', bitAdministrador: true })
    return head('PUT /api/perfil/1', token, json(body.length)) + body
  }

  async function whileLocked(work: () => Promise<unknown>) {
    const sql = postgres(config.DATABASE_URL.url, { max: 1, onnotice: () => {} })
    await sql.begin(async (sql) => {
      await sql`select from perfil where id = 1 for update`
      await work()
    })
    await sql.end()
  }
})

it('leaves half of the memory for large bodies to other users', async () => {
  const wide = await testApp({ DATABASE_POOL_MAX: '40', DATABASE_URL: config.DATABASE_URL.url })
  const address = new URL(await wide.app.listen({ host: '127.0.0.1', port: 0 }))
  const upload = (token: string, bytes: number) => {
    const client: Socket = connect(Number(address.port), '127.0.0.1')
    client.on('error', () => {})
    client.write(head('POST /api/usuario', token, `${json(LARGE)}Connection: close\r\n`))
    client.write(Buffer.alloc(bytes, ' '))
    return client
  }
  const slow = Array.from({ length: 12 }, () => upload(one.token, 1000))
  await sleep(500)
  // The service answers 400 to a body that it has read, because a body of nothing but spaces is not
  // JSON.
  const READ = /^HTTP\/1.1 400 /
  for (let round = 0; round < 3; round += 1) {
    const uploads = Array.from({ length: 3 }, () => upload(other.token, LARGE))
    for (const answer of await Promise.all(uploads.map((client) => text(client)))) {
      expect(answer).toMatch(READ)
    }
  }
  const waiting = text(upload(one.token, LARGE))
  expect(await isPending(waiting)).toBe(true)
  for (const client of slow) client.destroy()
  expect(await waiting).toMatch(READ)
})
