import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { afterAll, afterEach, expect, it } from 'vitest'
import { loadConfig } from '../src/config.js'
import { openPool, type Pool } from '../src/database/pool.js'
import { cloneDatabase } from './app.js'
import { SECRETS } from './service.js'

const NO_ANSWER = 'the database has not answered in time'

const database = new URL(await cloneDatabase())
const direct = postgres(database.href, { max: 1, onnotice: () => {} })
await direct`create table nota (n integer)`

/** A way to the database; `accept` says what becomes of new connections. */
const clients = new Set<Socket>()
function forward(client: Socket) {
  const server = net.connect(Number(database.port), database.hostname)
  client.pipe(server).pipe(client)
  server.on('error', () => {})
  client.on('close', () => server.destroy())
}
let accept = forward
const proxy = net.createServer((client) => {
  clients.add(client)
  client.on('error', () => {})
  client.on('close', () => clients.delete(client))
  accept(client)
})
proxy.listen(0, '127.0.0.1')
await once(proxy, 'listening')
const port = (proxy.address() as AddressInfo).port
const url = new URL(database)
url.host = `127.0.0.1:${port}`

const pools: Pool[] = []
/** The hosts that pools have told of as serving again. */
const served: unknown[] = []
const info = (host: unknown) => served.push(host)
function open(max = 1, DATABASE_URL = url.href) {
  const env = { ...SECRETS, DATABASE_URL, DATABASE_POOL_MAX: String(max) }
  const pool = openPool(loadConfig(env), { info })
  pools.push(pool)
  return pool
}
/** From now on nothing comes through, and nobody is told. */
function cut() {
  accept = () => {}
  for (const client of clients) client.unpipe().removeAllListeners('data')
}

afterEach(async () => {
  accept = forward
  for (const client of clients) client.destroy()
  for (const pool of pools.splice(0)) await pool.end()
  served.length = 0
})
afterAll(async () => {
  proxy.close()
  await direct.end()
})

it('makes fragments and names as postgres.js does, and sends a query once', async () => {
  const sql = open()
  const insert = sql`insert into nota ${sql`(${sql('n')}) values (${7})`} returning n`
  expect(await insert).toEqual([{ n: 7 }])
  expect(await insert.catch(() => {})).toEqual([{ n: 7 }])
  expect(await sql`delete from nota where n = 7 returning n`).toEqual([{ n: 7 }])
  expect(await sql`select ${sql.json({ a: 1 })} as json`).toEqual([{ json: { a: 1 } }])
})

it('lets a query that waits for a lock delay nobody who has a free connection', async () => {
  const sql = open(2)
  const slow = sql`select pg_sleep(1)`.then(() => performance.now())
  const times = []
  for (let read = 0; read < 10; read++) {
    await sql`select 1`
    times.push(performance.now())
  }
  expect(Math.max(...times)).toBeLessThan(await slow)
})

it('has more queries than connections wait, and says how many', async () => {
  const sql = open(2)
  const all = Promise.all(Array.from({ length: 5 }, () => sql`select pg_sleep(0.1)`))
  await sleep(20)
  expect(sql.usage()).toEqual({ running: 2, waiting: 3 })
  await all
  expect(sql.usage()).toEqual({ running: 0, waiting: 0 })
  const sessions = await direct`
    select count(*)::integer as n from pg_stat_activity
    where application_name = 'llavero' and datname = current_database()
  `
  expect(sessions).toEqual([{ n: 2 }])
})

it('fails in time where all goes silent, and is back with what comes next', async () => {
  const sql = open(3)
  await Promise.all([1, 2, 3].map(() => sql`select pg_sleep(0.1)`))
  cut()
  const begin = performance.now()
  const answers = Array.from({ length: 9 }, () => sql`select 1`.catch(({ message }) => message))
  expect(new Set(await Promise.all(answers))).toEqual(new Set([NO_ANSWER]))
  expect(performance.now() - begin).toBeLessThan(5000)
  accept = forward
  expect(await sql`select 2 as n`).toEqual([{ n: 2 }])
})

it('never sends what it has given up while its connection was made', async () => {
  const sql = open()
  const heard: Socket[] = []
  accept = (client) => heard.push(client)
  await expect(sql`insert into nota values (1)`).rejects.toThrow()
  for (const client of heard) if (!client.destroyed) forward(client)
  accept = forward
  expect(await sql`select n from nota`).toEqual([])
})

it('waits for a server that is about to come, and for no longer than it may', async () => {
  const sql = open(
    1,
    `postgres://x@127.0.0.1:1,127.0.0.1:${port}/x`
      .replace('x@', `${url.username}:${url.password}@`)
      .replace(/x$/, url.pathname.slice(1)),
  )
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  expect(served).toEqual([])
  const nowhere = open(1, 'postgres://x:x@127.0.0.1:1/x')
  const begin = performance.now()
  await expect(nowhere`select 1`).rejects.toThrow('ECONNREFUSED')
  expect(performance.now() - begin).toBeLessThan(5000)
})

it('tries a host that lets in and closes no more than ten times a second', async () => {
  const sql = open()
  let tries = 0
  accept = (client) => {
    tries += 1
    client.end()
  }
  await expect(sql`select 1`).rejects.toThrow()
  expect(tries).toBeLessThan(50)
})

it('tells once, and of which host, when it is served again', async () => {
  const sql = open(3)
  const all = () => Promise.allSettled([1, 2, 3].map(() => sql`select pg_sleep(0.1)`))
  await all()
  await sql`select 1 / 0`.catch(() => {})
  accept = (client) => client.destroy()
  for (const client of clients) client.destroy()
  await all()
  await all()
  expect(served).toEqual([])
  accept = forward
  await all()
  await all()
  expect(served).toEqual([{ host: '127.0.0.1', port }])
})

it('goes on where sessions are ended, idle ones and busy ones', async () => {
  const sql = open(3)
  const busy = [1, 2, 3].map(() => sql`select pg_sleep(1)`.catch(({ code }) => code))
  await sleep(200)
  const end = () => direct`
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'llavero' and datname = current_database()
  `
  await end()
  expect(await Promise.all(busy)).toEqual(Array(3).fill('CONNECTION_CLOSED'))
  await Promise.all([1, 2, 3].map(() => sql`select pg_sleep(0.1)`))
  await end()
  await sleep(100)
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
})

it('does with the connections that it gets where the server has no more', async () => {
  const role = `pocas_${database.pathname.slice(1)}`
  await direct.unsafe(`create role ${role} login password 'x' connection limit 2`)
  const limited = new URL(url)
  limited.username = role
  limited.password = 'x'
  const sql = open(4, limited.href)
  const answers = Array.from(
    { length: 12 },
    (_, n) => sql`select ${n}::integer as n, pg_sleep(0.05)`,
  )
  expect((await Promise.all(answers)).map(([row]) => row?.n)).toEqual([...answers.keys()])
  expect(served).toEqual([])
  await sql.end()
  await expect.poll(() => direct.unsafe(`drop role ${role}`)).toEqual([])
})

it('makes its connections anew where they can not be written to', async () => {
  const sql = open(2)
  const pid = async () => (await sql`select pg_backend_pid() as pid`)[0]?.pid
  const before = await pid()
  await sql`set default_transaction_read_only = on`
  await expect(sql`insert into nota values (2)`).rejects.toMatchObject({ code: '25006' })
  expect(await pid()).not.toBe(before)
  await expect(sql`select 1 / 0`).rejects.toMatchObject({ code: '22012' })
  expect(await sql`insert into nota values (2) returning n`).toEqual([{ n: 2 }])
})

/** Sends an insert with `sql` just when its only connection, on `socket()`, is being reset. */
async function insertAmidReset(sql: postgres.Sql, n: number, socket: () => Socket) {
  await sql`select 1`
  const insert = new Promise((resolve) => {
    socket().once('error', () => resolve(sql`insert into nota values (${n}) returning n`))
  })
  for (const client of clients) client.resetAndDestroy()
  const outcome = insert.then(
    (rows) => rows,
    () => 'rejected',
  )
  await sleep(300)
  const [other] = await sql`select count(*)::integer as stored from nota where n = ${n}`
  return { outcome: await Promise.race([outcome, sleep(5000, 'none')]), stored: other?.stored }
}

it('has connections of its own because postgres.js resolves what it has never sent', async () => {
  let socket = new net.Socket()
  const openSocket = () => {
    socket = net.connect(port, '127.0.0.1')
    return socket
  }
  const sql = postgres(
    url.href,
    Object.assign({ max: 1, fetch_types: false }, { socket: openSocket }),
  )
  const lost = await insertAmidReset(sql, 3, () => socket)
  await sql.end({ timeout: 1 })
  // Once this fails, one instance may do for the pool.
  expect(lost).toEqual({ outcome: [], stored: 0 })
})

it('sends a write again whose table was altered while it waited', async () => {
  await direct.unsafe(`
    create function anota() returns setof nota language plpgsql as $$ begin
      perform pg_advisory_xact_lock(1);
      return query insert into nota values (0) returning *;
    end $$
  `)
  let answer: PromiseLike<unknown> | undefined
  await direct.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(1)`
    answer = open()`select n from anota()`.then((rows) => rows)
    const waiting = () => tx`
      select from pg_locks join pg_database on pg_database.oid = database
      where datname = current_database() and locktype = 'advisory' and not granted
    `
    await expect.poll(waiting).toHaveLength(1)
    await tx`alter table nota add column m integer`
  })
  expect(await answer).toEqual([{ n: 0 }])
  expect(await direct`delete from nota where n = 0 returning n`).toHaveLength(1)
})
