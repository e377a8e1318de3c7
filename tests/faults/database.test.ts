import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, BUSY, INTERNAL, NOT_READY, READY } from '../answers.js'
import { PNG } from '../app.js'
import { closeAtEnd } from '../cleanup.js'
import { connectTo } from '../connect.js'
import { startDatabaseProxy } from '../database-proxy.js'
import { addressOf, type EndpointName, endpoint, usuario } from '../endpoints.js'
import { serve } from '../serve.js'
import { hasEnded } from '../service.js'
import { addUsers, nombreOf } from '../users.js'
import { type Database, startDatabase } from './database.js'
import { type Service, startService } from './service.js'

const POOL_MAX = 10
const MAX_CONNECTIONS = 20
/** The 5 s in which the service answers, with a margin for a busy machine, in milliseconds. */
const IN_TIME = 7500
/** The number of users who send the requests in turn. */
const USERS = 16
/** The number of modules. */
const MODULOS = 300

let database: Database
let proxy: Awaited<ReturnType<typeof startDatabaseProxy>>
let images: Awaited<ReturnType<typeof startImageHost>>
let sql: ReturnType<typeof connectTo>
let service: Service
/** The tokens of several users, because one user gets at most half of the connections. */
let tokens: string[]
let turn = 0

beforeAll(async () => {
  database = await startDatabase({ max_connections: `${MAX_CONNECTIONS}` })
  proxy = await startDatabaseProxy(new URL(database.url))
  closeAtEnd(proxy.stop)
  images = await startImageHost()
  // The service's user is not a superuser here (in compose.yaml it is). PostgreSQL reserves
  // connections for superusers, so this test gets one even if the service has none left.
  const server = connectTo(database.url)
  await server`create role llavero login password 'clave-de-base'`
  await server`create database llavero owner llavero`
  sql = connectTo(urlFor('postgres', new URL(database.url).password))
  service = await startService({
    DATABASE_URL: urlFor('llavero', 'clave-de-base', proxy.host.port),
    DATABASE_POOL_MAX: `${POOL_MAX}`,
    CLOUDINARY_URL: `cloudinary://clave:secreto@nube?upload_prefix=${images.url}`,
  })
  const schema = connectTo(urlFor('llavero', 'clave-de-base'))
  await addUsers(schema, USERS)
  // One after the other: comparing all passwords at once could take longer than the limit of a
  // call.
  tokens = []
  for (let user = 1; user <= USERS; user += 1) tokens.push(await service.login(nombreOf(user)))
  await sql`
    insert into perfil ("strNombrePerfil") select 'Perfil ' || n from generate_series(2, 40) as n
  `
  await sql`
    insert into modulo ("strNombreModulo")
    select 'MODULO ' || n from generate_series(5, ${MODULOS}::integer) as n
  `
})

/** Returns the URL of the service's database for a user. */
function urlFor(user: string, password: string, port = database.port) {
  return `postgres://${user}:${password}@127.0.0.1:${port}/llavero`
}

/** Starts an image host that accepts every upload; it calls `onUpload` before it answers. */
async function startImageHost() {
  const host = { url: '', removals: 0, onUpload: () => {} }
  host.url = await serve(async (request, response) => {
    await text(request)
    if (request.url?.endsWith('/upload')) host.onUpload()
    else host.removals += 1
    const answer = { public_id: 'usuarios_corp/x', secure_url: 'https://x.es/x.png', result: 'ok' }
    response.end(JSON.stringify(answer))
  })
  return host
}

type Result = { name: string; ms: number; answer: Answer; failure: object }

const isDone = ({ answer: { status, body } }: Result) => status === 200 && body.success !== false

async function call(method: string, url: string, body?: object, failure: object = {}) {
  const since = performance.now()
  turn += 1
  const answer = await service.call(method, url, body, tokens[turn % USERS])
  return { name: `${method} ${url}`, ms: performance.now() - since, answer, failure }
}

const isBusy = ({ answer: { status, body } }: Result) => isDeepStrictEqual({ status, body }, BUSY)

/**
 * Expects that each call was answered in time, with a success or with the endpoint's answer
 * `unexpected` (endpoints.ts). With `mayBeBusy`, because all connections may be occupied by
 * statements that get no answer, the service may also be busy.
 */
function expectContract(results: Result[], mayBeBusy = false) {
  const failed = results.filter((result) => !isDone(result) && !(mayBeBusy && isBusy(result)))
  expect(failed.map(({ name, answer }) => ({ name, ...answer }))).toEqual(
    failed.map(({ name, failure }) => ({ name, ...failure })),
  )
  expect(results.filter(({ ms }) => ms > IN_TIME)).toEqual([])
}

/**
 * A read that may come from a cache, another read, and two writes. Their sample requests succeed
 * however often they are sent.
 */
const LIGHT: EndpointName[] = [
  'GET /api/permisos/mis-permisos/:idPerfil',
  'GET /api/perfil',
  'POST /api/permisos/guardar-matriz',
  'PUT /api/modulo/:id',
]
/** The endpoints of LIGHT, and two that compare or hash a password. */
const REPEATABLE: EndpointName[] = [...LIGHT, 'POST /api/auth/login', 'PUT /api/usuario/:id']

/** Sends an endpoint's sample request. */
function callEndpoint(name: EndpointName) {
  const { method, url } = addressOf(name)
  const { body, unexpected } = endpoint(name)
  return call(method, url, body, unexpected)
}

/** Calls the LIGHT endpoints from 16 loops while `meanwhile` runs; returns all results. */
async function underLoad(meanwhile: () => Promise<unknown>, mayBeBusy = false) {
  const results: Result[] = []
  let isOver = false
  const loops = Array.from({ length: 16 }, async (_, loop) => {
    for (let n = loop; !isOver; n += 1) {
      const name = LIGHT[n % LIGHT.length]
      if (name) results.push(await callEndpoint(name))
      await sleep(20)
    }
  })
  await sleep(300)
  await meanwhile().finally(() => {
    isOver = true
  })
  await Promise.all(loops)
  expectContract(results, mayBeBusy)
  return results
}

/**
 * Expects that within 5 s the endpoints in REPEATABLE succeed again, with two calls of each at
 * once.
 */
async function expectRecovery() {
  const until = performance.now() + 5000
  for (;;) {
    const calls = Array.from({ length: 2 }, () => REPEATABLE.map(callEndpoint))
    const results = await Promise.all(calls.flat())
    expectContract(results)
    const failed = results.filter((result) => !isDone(result))
    if (failed.length === 0) break
    if (performance.now() > until) throw new Error(`not back: ${JSON.stringify(failed)}`)
    await sleep(50)
  }
  expect(await service.call('GET', '/health/ready')).toEqual(READY)
}

const sessions = () => sql`select pid from pg_stat_activity where usename = 'llavero'`
const endSessions = () => sql`
  select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = 'llavero'
`

/** After each fault, the same process has released its connections, descriptors and memory. */
afterEach(async () => {
  expect(hasEnded(service.child)).toBe(false)
  // The server may not yet have noticed the connections that were silently cut off.
  const most = 2 * POOL_MAX
  const settled = { timeout: 20_000, interval: 500 }
  await expect.poll(async () => (await sessions()).length, settled).toBeLessThanOrEqual(most)
  await expect.poll(() => service.resources().handles, settled).toBeLessThan(100)
  expect(service.resources().memory).toBeLessThan(400)
}, 60_000)

describe('/health/ready answers 503 and the service serves again afterwards, when the database', () => {
  /** Refuses the service's connections, as when others have taken all that the server allows. */
  async function refuseAll() {
    await sql`alter role llavero connection limit 0`
    await endSessions()
  }
  const acceptAll = () => sql`alter role llavero connection limit -1`
  let thaw = () => {}

  const FAULTS: [string, () => unknown, () => unknown][] = [
    ['is frozen', () => (thaw = database.freeze()), () => thaw()],
    ['is silently cut off', () => proxy.silence(), () => proxy.serve()],
    ['is stopped', () => database.stop(), () => database.start()],
    ['has no connection left', refuseAll, acceptAll],
  ]
  it.each(FAULTS)('%s', async (_, begin, end) => {
    const unready: Answer[] = []
    const before = service.lines().length
    const results = await underLoad(async () => {
      await begin()
      for (let second = 0; second < 6; second += 1) {
        await sleep(1000)
        unready.push(await service.call('GET', '/health/ready'))
        expect(await service.call('GET', '/health/live')).toEqual(READY)
      }
    }, true).finally(end)
    expect(results.every(isDone)).toBe(false)
    // A connection that was still open may have answered the first of the six requests.
    expect(unready.slice(1)).toEqual(Array(5).fill(NOT_READY))
    await expectRecovery()
    // On a busy machine the database may be lost a second time while it starts.
    const logged = (message: string) =>
      service
        .lines()
        .slice(before)
        .filter(({ msg }) => msg === message).length
    await expect.poll(() => logged('the database serves again')).toBeGreaterThan(0)
    await expect
      .poll(() => logged('the database is lost') - logged('the database serves again'))
      .toBe(0)
  })
})

it('fails only the statements in flight when the server terminates all sessions', async () => {
  const results = await underLoad(async () => {
    expect((await endSessions()).length).toBeGreaterThan(0)
    await sleep(1000)
  })
  expect(results.filter((result) => !isDone(result)).length).toBeLessThanOrEqual(2 * POOL_MAX)
  await expectRecovery()
})

it('removes no uploaded image while it is unknown whether the user was inserted', async () => {
  let thaw = () => {}
  images.onUpload = () => {
    thaw = database.freeze()
  }
  const body = usuario('eva', { imagenBase64: PNG })
  const { answer, ms } = await call('POST', '/api/usuario', body).finally(() => thaw())
  images.onUpload = () => {}
  expect({ answer, isLate: ms > IN_TIME }).toEqual({ answer: INTERNAL, isLate: false })
  await expectRecovery()
  // The insert may have been carried out after the service had stopped waiting for it.
  expect(images.removals).toBe(0)
})
