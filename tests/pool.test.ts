import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { queryObjects } from 'node:v8'
import { test } from 'vitest'
import { loadConfig } from '../src/config.js'
import { openPool, type Pool } from '../src/database/pool.js'
import { cloneDatabase } from './app.js'
import { connectTo } from './connect.js'
import { startDatabaseProxy } from './database-proxy.js'
import { letEventsPass } from './events.js'
import { openConnections } from './hold.js'
import { SECRETS } from './service.js'

const NO_ANSWER = 'no answer in time'
const NOT_SENT = 'the statement was not sent to the database'
/** A host that refuses every connection. */
const NOBODY = '127.0.0.1:1'

/** Each test has a database, a proxy and pools of its own, so the tests run concurrently. */
const it = test
  .extend('database', async () => new URL(await cloneDatabase()))
  /** A connection to the database that does not lead through the proxy. */
  .extend('direct', ({ database }) => connectTo(database.href))
  .extend('proxy', async ({ database }, { onCleanup }) => {
    const proxy = await startDatabaseProxy(database)
    onCleanup(proxy.stop)
    return proxy
  })
  /** A function that returns the sessions of the pools. */
  .extend('sessions', ({ direct }) => {
    const select = () => direct`
      select from pg_stat_activity
      where application_name = 'llavero' and datname = current_database()
    `
    return select
  })
  /** The messages that the pools have logged, with the host of each. */
  .extend('logged', (): [message: string, host: object][] => [])
  /** A function that opens pools. They connect to the proxy, unless other hosts are given. */
  .extend('open', ({ proxy, logged }, { onCleanup }) => {
    const pools: Pool[] = []
    onCleanup(async () => {
      await Promise.all(pools.map((pool) => pool.end()))
    })
    const write = ({ host, port }: any, message: string) => logged.push([message, { host, port }])
    return (max = 1, hosts = [proxy.url.host], further = {}) => {
      const DATABASE_URL = proxy.url.href.replace(proxy.url.host, hosts.join())
      const env = { ...SECRETS, DATABASE_URL, DATABASE_POOL_MAX: `${max}`, ...further }
      const pool = openPool(loadConfig(env), { info: write, error: write } as any)
      pools.push(pool)
      return pool
    }
  })

/** Returns the message of the error with which a statement fails. */
const failure = (statement: PromiseLike<unknown>): Promise<string> =>
  Promise.resolve(statement).then(
    () => 'it did not fail',
    ({ message }) => message,
  )

/** Returns how many connections the process has. */
const countConnections = () =>
  process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length

// These two tests count the connections of the process, so they come before all others.
it('closes an idle connection at its end although the server is silent', async ({
  expect,
  proxy,
  open,
}) => {
  const sql = open()
  await sql`select 1`
  const before = countConnections()
  proxy.pause()
  await sql.end()
  // The two sockets of the proxy are still open.
  await expect.poll(countConnections).toBe(before - 1)
})

it('closes the connections of statements that are answered while it ends', async ({
  expect,
  database,
  direct,
  open,
}) => {
  const sql = open(3, [database.host])
  await openConnections(sql, direct, 3)
  const before = countConnections()
  const answers = [1, 2, 3].map(() => failure(sql`select pg_sleep(0.3)`))
  await expect.poll(() => sql.usage().running, { interval: 5 }).toBe(3)
  await sql.end()
  expect(await Promise.all(answers)).toEqual(Array(3).fill('it did not fail'))
  await expect.poll(countConnections).toBe(before - 3)
})

// This test counts the sockets of the process, so it does not run beside others either.
it('keeps no memory of failed attempts to open a connection', async ({ expect, open }) => {
  const size = 20
  const sql = open(size, [NOBODY])
  const count = () => queryObjects(net.Socket, { format: 'count' })
  const before = count()
  const attempts = Array.from({ length: size }, () => failure(sql`select 1`))
  const reason = `${NOT_SENT}: connect ECONNREFUSED ${NOBODY}`
  expect(await Promise.all(attempts)).toEqual(Array(size).fill(reason))
  expect(count() - before).toBeLessThanOrEqual(2 * size)
})

// This test sends statements in certain turns of the event loop, so it does not run beside others
// either.
it('resolves a statement only with its own rows while its connection is being reset', async ({
  expect,
  direct,
  proxy,
  open,
}) => {
  // postgres.js passes on a text of this length at once, and a shorter one in the next turn.
  const text = 'x'.repeat(1024)
  const sql = open(4)
  let answered = 0
  for (let round = 0; round < 12; round += 1) {
    await openConnections(sql, direct, 4)
    proxy.reset()
    // After one of these turns the error of a connection has been emitted, and its end has not.
    for (let turn = 0; turn < round % 3; turn += 1) await setImmediate()
    const statements = Array.from({ length: 8 }, async (_, n) => {
      for (let turn = 0; turn < n; turn += 1) await setImmediate()
      const rows = await sql`select ${n}::integer as n, length(${text}) as length`.catch(() => null)
      if (!rows) return
      expect(rows).toEqual([{ n, length: text.length }])
      answered += 1
    })
    await Promise.all(statements)
  }
  expect(answered).toBeGreaterThan(12)
})

it.concurrent('stays with the connections that it has if the host refuses further ones', async ({
  expect,
  direct,
  database,
  logged,
  open,
}) => {
  const role = `${database.pathname.slice(1)}_2`
  await direct.unsafe(`create role ${role} login password 'x' connection limit 2`)
  const { host, pathname } = database
  const DATABASE_URL = `postgres://${role}:x@${host},${NOBODY}${pathname}`
  const sql = open(4, [], { DATABASE_URL })
  const pids = new Set<unknown>()
  const readFor = async (ms: number) => {
    const end = performance.now() + ms
    do {
      const [row] = await sql`select pg_backend_pid() as pid`
      pids.add(row?.pid)
      await sleep(5)
    } while (performance.now() < end)
  }
  // After an answer the pool knows that the host is up. It forgets this after a second without one.
  await readFor(0)
  await Promise.all([1500, 1500, 1500, 1500].map(readFor))
  expect(pids.size).toBeLessThanOrEqual(2)
  expect(logged).toEqual([])
  await sql.end()
  await direct.unsafe(`drop role ${role}`)
})

it.concurrent('sets read committed, a limit of 4 s for each statement and keepalives after 60 s, whatever the defaults of the database are', async ({
  expect,
  direct,
  database,
  open,
}) => {
  await direct.unsafe(`
    alter database ${database.pathname.slice(1)} set default_transaction_isolation = serializable;
    alter database ${database.pathname.slice(1)} set statement_timeout = '1h'
  `)
  const sql = open()
  const [row] = await sql`
    select
      current_setting('transaction_isolation') as level,
      current_setting('statement_timeout') as limit,
      current_setting('tcp_keepalives_idle') as idle
  `
  expect(row).toEqual({ level: 'read committed', limit: '4s', idle: '60' })
})

it.concurrent('lets the users take turns, each with their statements in order', async ({
  expect,
  open,
}) => {
  const sql = open()
  const finished: string[] = []
  const ask = async (statement: string) => {
    await sql.forUser(Number(statement[0]))`select pg_sleep(0.01)`
    finished.push(statement)
  }
  await Promise.all(['1a', '1b', '1c', '1d', '2a', '2b', '3a'].map(ask))
  expect(finished).toEqual(['1a', '2a', '3a', '1b', '2b', '1c', '1d'])
})

it.concurrent('returns a complete result after a statement that failed partway through its rows', async ({
  expect,
  open,
}) => {
  const sql = open()
  const late = sql`select 1 / (1000 - n) as n from generate_series(1, 2000) as n`
  await expect(late).rejects.toMatchObject({ code: '22012' })
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
})

it.concurrent('takes an error of the database as its answer: it serves again, over the same connection', async ({
  expect,
  proxy,
  logged,
  open,
}) => {
  const sql = open()
  const session = () => sql`select pg_backend_pid() as pid`
  proxy.refuse()
  expect(await failure(session())).toContain(NOT_SENT)
  proxy.serve()
  expect(await failure(sql`select 1 / 0`)).toBe('division by zero')
  expect(logged.slice(1)).toEqual([['the database serves again', proxy.host]])
  const before = await session()
  expect(await failure(sql`select 1 / 0`)).toBe('division by zero')
  expect(await session()).toEqual(before)
})

it.concurrent.for([
  ['larger than the buffers of the network', 2 ** 25],
  ['that fits into the buffers of the network', 2 ** 19],
] as const)(
  'rejects a statement %s when the network holds it up, and never sends the rest of it',
  async ([, length], { expect, direct, proxy, open, sessions }) => {
    await direct`create table nota (n integer)`
    const sql = open()
    const insert = (text: string) => sql`insert into nota select length(${text})`
    // The statement is prepared from now on, so the driver sends the text at once.
    await insert('x')
    proxy.pause()
    expect(await failure(insert('x'.repeat(length)))).toBe(NO_ANSWER)
    proxy.resume()
    await expect.poll(sessions, { timeout: 10_000 }).toEqual([])
    expect(await direct`select n from nota`).toEqual([{ n: 1 }])
  },
)

it.concurrent('never sends a statement that it rejected while it was opening a connection, and names the host', async ({
  expect,
  proxy,
  open,
}) => {
  const sql = open()
  proxy.silence()
  const reason = `${NOT_SENT}: write CONNECT_TIMEOUT ${proxy.url.host}`
  expect(await failure(sql`create table rechazada ()`)).toBe(reason)
  proxy.serve()
  expect(await sql`select to_regclass('rechazada') as tabla`).toEqual([{ tabla: null }])
})

it.concurrent('connects to the next host when the first one has not answered in time', async ({
  expect,
  database,
  proxy,
  open,
}) => {
  const sql = open(1, [proxy.url.host, database.host])
  await sql`select 1`
  proxy.silence()
  expect(await failure(sql`select 1`)).toBe(NO_ANSWER)
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  expect(proxy.connections()).toBe(1)
})

it.concurrent('takes no answer of a host that it has left for one of the next host', async ({
  expect,
  proxy,
  open,
}) => {
  const sql = open(2, [proxy.url.host, NOBODY])
  await sql`select 1`
  const late = expect(sql`select pg_sleep(3)`).resolves.toHaveLength(1)
  proxy.refuseFurther()
  await sleep(1100)
  // The late answer comes while this statement looks for a host. It does not mean that a host has
  // too many connections.
  expect(await failure(sql`select 1`)).toContain(NOT_SENT)
  await late
})

it.concurrent('connects to the next host only once, although the first one has answered other statements', async ({
  expect,
  database,
  proxy,
  open,
}) => {
  proxy.refuse()
  // Without the pool's settings, the server does not cancel the statement that takes too long.
  const hosts = [database.host, proxy.url.host]
  const sql = open(2, hosts, { DATABASE_PREPARE: 'false' })
  const late = failure(sql`select pg_sleep(6)`)
  let isLate = false
  void late.then(() => {
    isLate = true
  })
  while (!isLate) {
    // The last one of these may be in flight when all connections are reset.
    await failure(sql`select 1`)
    await sleep(20)
  }
  expect(await late).toBe(NO_ANSWER)
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  expect(proxy.connections()).toBe(1)
})

it.concurrent('connects to the next host when the first one refuses the user', async ({
  expect,
  proxy,
  open,
}) => {
  const refusing = net.createServer((socket) => {
    socket.on('error', () => {})
    const fields = 'SFATAL\0VFATAL\0C28000\0Mno entry for the host\0\0'
    const head = Buffer.from('E\0\0\0\0')
    head.writeInt32BE(4 + fields.length, 1)
    socket.once('data', () => socket.end(Buffer.concat([head, Buffer.from(fields)])))
  })
  await once(refusing.listen(0, '127.0.0.1'), 'listening')
  const { port } = refusing.address() as AddressInfo
  const sql = open(1, [`127.0.0.1:${port}`, proxy.url.host])
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  refusing.close()
})

it.concurrent('sends no statement after its end', async ({ expect, open }) => {
  const sql = open()
  await sql.end()
  await expect(sql`select 1`).rejects.toMatchObject({ code: 'busy' })
})

it.concurrent('connects to a database whose name is percent-encoded in the URL', async ({
  expect,
  database,
  direct,
  proxy,
  open,
}) => {
  const name = `${database.pathname.slice(1)} ñ`
  await direct.unsafe(`create database "${name}"`)
  const sql = open(1, [], { DATABASE_URL: `${proxy.url.href}%20%C3%B1` })
  expect(await sql`select current_database() as name`).toEqual([{ name }])
  await sql.end()
  await direct.unsafe(`drop database "${name}" with (force)`)
})

it.concurrent('tries to open a connection at most ten times a second', async ({
  expect,
  proxy,
  open,
}) => {
  const sql = open()
  const before = proxy.connections()
  proxy.refuse()
  const begin = performance.now()
  expect(await failure(sql`select 1`)).toContain(NOT_SENT)
  const seconds = (performance.now() - begin) / 1000
  const attempts = proxy.connections() - before
  expect(attempts).toBeGreaterThan(1)
  expect(attempts).toBeLessThanOrEqual(10 * seconds + 1)
})

it.concurrent.for([
  ['the only one', []],
  // With so many hosts, it is not the turn of the first one when the pool gives up.
  ['one of ten', [1, 2, 3, 4, 5, 6, 7, 8, 9].map((port) => `127.0.0.1:${port}`)],
] as const)(
  'logs once that the database is lost and once that it serves again, with its host, %s',
  async ([, further], { expect, direct, proxy, logged, open }) => {
    const sql = open(3, [proxy.url.host, ...further])
    const all = () => Promise.allSettled([1, 2, 3].map(() => sql`select pg_sleep(0.1)`))
    await openConnections(sql, direct, 3)
    await failure(sql`select 1 / 0`)
    expect(logged).toEqual([])
    proxy.refuse()
    await all()
    await all()
    expect(logged).toEqual([['the database is lost', proxy.host]])
    proxy.serve()
    await all()
    await all()
    expect(logged.slice(1)).toEqual([['the database serves again', proxy.host]])
  },
)

it.concurrent('rejects a statement as busy if all connections are, although one could not be opened before', async ({
  expect,
  proxy,
  open,
}) => {
  const sql = open()
  proxy.refuse()
  const first = failure(sql`select 1`)
  await expect.poll(proxy.connections).toBeGreaterThan(0)
  proxy.serve()
  expect(await first).toBe('it did not fail')
  const user = sql.forUser(1)
  const slow = failure(user`select pg_sleep(3)`)
  // The first statement waits for the connection, and the second one for the user's share.
  const waiting = [sql`select 1`, user`select 1`]
  const outcomes = await Promise.allSettled(waiting)
  expect(outcomes).toMatchObject(Array(2).fill({ status: 'rejected', reason: { code: 'busy' } }))
  await slow
})

it.concurrent('goes on to the next host once, also if two statements could not be sent to a host', async ({
  expect,
  onTestFinished,
  database,
  proxy,
  open,
}) => {
  const other = await startDatabaseProxy(database)
  onTestFinished(other.stop)
  const sql = open(2, [proxy.url.host, other.url.host])
  proxy.refuse()
  await Promise.all([sql`select 1`, sql`select 2`])
  proxy.serve()
  other.refuse()
  // A host that has answered within the last second counts as full and not as lost.
  await sleep(1100)
  const before = other.connections()
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  expect(other.connections() - before).toBe(1)
})

it.concurrent('logs that another host serves, although the pool was never without a connection', async ({
  expect,
  database,
  proxy,
  logged,
  open,
}) => {
  const other = { host: database.hostname, port: Number(database.port) }
  const sql = open(2, [proxy.url.host, database.host])
  await sql`select 1`
  proxy.silence()
  const unanswered = failure(sql`select 1`)
  expect(await sql`select 2 as two`).toEqual([{ two: 2 }])
  expect(logged).toEqual([['the database serves again', other]])
  expect(await unanswered).toBe(NO_ANSWER)
})

it.concurrent('replaces connections that turn out to be read-only, once', async ({
  expect,
  database,
  direct,
  proxy,
  open,
  sessions,
}) => {
  await direct`create table nota (n integer)`
  const sql = open(2)
  await openConnections(sql, direct, 2)
  await direct.unsafe(
    `alter database ${database.pathname.slice(1)} set default_transaction_read_only = on`,
  )
  proxy.cut()
  await letEventsPass()
  await openConnections(sql, direct, 2)
  await direct.unsafe(`
    set default_transaction_read_only = off;
    alter database ${database.pathname.slice(1)} reset default_transaction_read_only
  `)
  const late = failure(sql`do $$ begin perform pg_sleep(0.5); insert into nota values (1); end $$`)
  await expect(sql`insert into nota values (2)`).rejects.toMatchObject({ code: '25006' })
  expect(await sql`insert into nota values (2) returning n`).toEqual([{ n: 2 }])
  expect(await late).toContain('read-only')
  expect(await sql`insert into nota values (2) returning n`).toEqual([{ n: 2 }])
  // The replaced connections are closed. The late error replaces no connection once more.
  await expect.poll(sessions).toHaveLength(1)
})

it.concurrent('sends no prepared statement with DATABASE_PREPARE=false', async ({
  expect,
  database,
  open,
}) => {
  const sql = open(1, [database.host], { DATABASE_PREPARE: 'false' })
  await sql`select ${1}::integer`
  expect(await sql`select name from pg_prepared_statements`).toEqual([])
})

it.concurrent('when it ends, also closes the connection of a statement that is answered while another connection is still being opened', async ({
  expect,
  proxy,
  open,
  sessions,
}) => {
  const sql = open(2)
  await sql`select 1`
  const slow = failure(sql`select pg_sleep(0.5)`)
  proxy.hold()
  const unsent = expect(sql`select 1`).rejects.toMatchObject({ code: 'busy' })
  await expect.poll(() => sql.usage().running).toBe(2)
  await sql.end()
  expect(await slow).toBe('it did not fail')
  await unsent
  await expect.poll(sessions).toHaveLength(0)
})
