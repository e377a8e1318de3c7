import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { queryObjects } from 'node:v8'
import postgres from 'postgres'
import { it, type TestContext } from 'vitest'
import { loadConfig } from '../src/config.js'
import { openPool, type Pool } from '../src/database/pool.js'
import { cloneDatabase } from './app.js'
import { startDatabaseProxy } from './database-proxy.js'
import { handleEvents } from './events.js'
import { holdStatements, openConnections } from './hold.js'
import { SECRETS } from './service.js'

const NO_ANSWER = 'no answer in time'
const NOT_SENT = 'the statement was not sent to the database'

type OnTestFinished = TestContext['onTestFinished']

/**
 * Returns what a test works with: a database of its own, a connection to it, a proxy before it, and
 * a function that opens pools. Each test has its own, so the tests run concurrently.
 */
async function setUp(onTestFinished: OnTestFinished) {
  const database = new URL(await cloneDatabase())
  const direct = postgres(database.href, { max: 1, onnotice: () => {} })
  await direct`create table nota (n integer)`
  const proxy = await startDatabaseProxy(database)
  const pools: Pool[] = []
  /** The messages that the pools have logged, with the host of each. */
  const logged: [message: string, host: unknown][] = []
  const write = ({ host, port }: any, message: string) => logged.push([message, { host, port }])

  function open(max = 1, DATABASE_URL = proxy.url.href, others: Record<string, string> = {}) {
    const env = { ...SECRETS, DATABASE_URL, DATABASE_POOL_MAX: String(max), ...others }
    const pool = openPool(loadConfig(env), { info: write, error: write } as any)
    pools.push(pool)
    return pool
  }

  /** Returns the sessions of all pools of this test. */
  const sessions = () => direct`
    select from pg_stat_activity
    where application_name = 'llavero' and datname = current_database()
  `

  onTestFinished(async () => {
    proxy.serve()
    proxy.cut()
    await Promise.all(pools.map((pool) => pool.end()))
    await proxy.stop()
    await direct.end()
  })
  return { database, direct, proxy, logged, open, sessions }
}

/** Returns the message of the error with which a statement fails. */
const failure = (statement: PromiseLike<unknown>): Promise<string> =>
  Promise.resolve(statement).then(
    () => 'it did not fail',
    ({ message }) => message,
  )

// This test counts the connections of the process, so it comes before all others.
it('closes the connections of statements that are answered while it ends', async ({
  expect,
  onTestFinished,
}) => {
  const { database, direct, open } = await setUp(onTestFinished)
  const count = () =>
    process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length
  const before = count()
  const sql = open(3, database.href)
  await openConnections(sql, direct, 3)
  expect(count()).toBe(before + 3)
  const answers = [1, 2, 3].map(() => failure(sql`select pg_sleep(0.3)`))
  await expect.poll(() => sql.usage().running, { interval: 5 }).toBe(3)
  await sql.end()
  expect(await Promise.all(answers)).toEqual(Array(3).fill('it did not fail'))
  await expect.poll(count).toBe(before)
})

// This test counts the sockets of the process, so it does not run beside others either.
it('keeps no memory of failed attempts to open a connection', async ({
  expect,
  onTestFinished,
}) => {
  const { open } = await setUp(onTestFinished)
  const size = 20
  const sql = open(size, 'postgres://x:x@127.0.0.1:1/x')
  const count = () => queryObjects(net.Socket, { format: 'count' })
  const before = count()
  const attempts = Array.from({ length: size }, () => failure(sql`select 1`))
  for (const message of await Promise.all(attempts)) expect(message).toContain(NOT_SENT)
  expect(count() - before).toBeLessThanOrEqual(2 * size)
})

it.concurrent('inserts fragments into a statement, and sends it once however often it is awaited', async ({
  expect,
  onTestFinished,
}) => {
  const { open } = await setUp(onTestFinished)
  const sql = open()
  const insert = sql`insert into nota ${sql`(n) values (${7})`} returning n`
  expect(await insert).toEqual([{ n: 7 }])
  expect(await insert.catch(() => {})).toEqual([{ n: 7 }])
  expect(await sql`delete from nota where n = 7 returning n`).toEqual([{ n: 7 }])
  expect(await sql`select ${{ a: 1 }}::jsonb as json`).toEqual([{ json: { a: 1 } }])
})

it.concurrent('sends no statement over a busy connection while another one is free', async ({
  expect,
  onTestFinished,
}) => {
  const { open } = await setUp(onTestFinished)
  const sql = open(2)
  const slow = sql`select pg_sleep(2)`.then(() => performance.now())
  const times = []
  for (let read = 0; read < 10; read++) {
    await sql`select 1`
    times.push(performance.now())
  }
  expect(Math.max(...times)).toBeLessThan(await slow)
})

it.concurrent('stays with the connections that it has if the host refuses further ones', async ({
  expect,
  onTestFinished,
}) => {
  const { direct, database, logged, open } = await setUp(onTestFinished)
  const role = `${database.pathname.slice(1)}_2`
  await direct.unsafe(`create role ${role} login password 'x' connection limit 2`)
  const url = Object.assign(new URL(database), { username: role, password: 'x' })
  const sql = open(4, url.href.replace(url.host, `${url.host},127.0.0.1:1`))
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

it.concurrent('reads what was committed before each statement, whatever the default of the database is', async ({
  expect,
  onTestFinished,
}) => {
  const { direct, database, open } = await setUp(onTestFinished)
  await direct.unsafe(`
    alter database ${database.pathname.slice(1)} set default_transaction_isolation = serializable
  `)
  const sql = open()
  const [row] = await sql`select current_setting('transaction_isolation') as level`
  expect(row).toEqual({ level: 'read committed' })
})

it.concurrent('sends waiting statements in their order', async ({ expect, onTestFinished }) => {
  const { open } = await setUp(onTestFinished)
  const sql = open()
  const finished: number[] = []
  const all = Array.from({ length: 6 }, async (_, n) => {
    await sql`select pg_sleep(0.01)`
    finished.push(n)
  })
  await Promise.all(all)
  expect(finished).toEqual([0, 1, 2, 3, 4, 5])
})

it.concurrent('lets statements wait while all connections are busy, and counts running and waiting ones', async ({
  expect,
  onTestFinished,
}) => {
  const { direct, open, sessions } = await setUp(onTestFinished)
  const sql = open(2)
  await holdStatements(sql, direct, 6, async () => {
    await expect.poll(sql.usage, { interval: 5 }).toEqual({ running: 2, waiting: 4 })
  })
  expect(sql.usage()).toEqual({ running: 0, waiting: 0 })
  // The server may still have sessions of the previous test's pool for a moment.
  await expect.poll(sessions).toHaveLength(2)
})

it.concurrent('lets the users take turns', async ({ expect, onTestFinished }) => {
  const { open } = await setUp(onTestFinished)
  const sql = open()
  const finished: number[] = []
  const ask = async (user: number) => {
    await sql.forUser(user)`select pg_sleep(0.01)`
    finished.push(user)
  }
  await Promise.all([1, 1, 1, 1, 2, 2, 3].map(ask))
  expect(finished).toEqual([1, 2, 3, 1, 2, 1, 1])
})

it.concurrent('resolves no write that was lost while its connections were being reset', async ({
  expect,
  onTestFinished,
}) => {
  const { direct, proxy, open } = await setUp(onTestFinished)
  const sql = open(4)
  await direct`create table perdida (n integer)`
  const resolved: number[] = []
  let next = 0
  const begin = performance.now()
  const isOver = () => resolved.length > 100 && performance.now() - begin > 3000
  const insertAll = async () => {
    while (!isOver()) {
      const n = next
      next += 1
      const rows = await sql<{ n: number }[]>`insert into perdida values (${n}) returning n`.catch(
        () => [],
      )
      for (const row of rows) resolved.push(row.n)
    }
  }
  const loops = Array.from({ length: 8 }, insertAll)
  while (!isOver()) {
    await sleep(100)
    proxy.reset()
  }
  await Promise.all(loops)
  const stored = await direct<{ n: number }[]>`select n from perdida order by n`
  const numbers = stored.map(({ n }) => n)
  expect(resolved.filter((n) => !numbers.includes(n))).toEqual([])
  expect(new Set(numbers).size).toBe(numbers.length)
})

it.concurrent('returns a complete result after a statement that failed partway through its rows', async ({
  expect,
  onTestFinished,
}) => {
  const { open } = await setUp(onTestFinished)
  const sql = open()
  const late = sql`select 1 / (1000 - n) as n from generate_series(1, 2000) as n`
  await expect(late).rejects.toMatchObject({ code: '22012' })
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
})

it.concurrent('keeps its connection after a violated constraint and after an error that an SQL function raises', async ({
  expect,
  onTestFinished,
}) => {
  const { direct, open } = await setUp(onTestFinished)
  const sql = open()
  await direct.unsafe(`
    create table unica (n integer primary key);
    create function niega() returns void language plpgsql as $$ begin
      raise exception using errcode = 'LL403';
    end $$
  `)
  const session = () => sql`select pg_backend_pid() as pid`
  const before = await session()
  await sql`insert into unica values (1)`
  await expect(sql`insert into unica values (1)`).rejects.toMatchObject({ code: '23505' })
  await expect(sql`select niega()`).rejects.toMatchObject({ code: 'LL403' })
  expect(await session()).toEqual(before)
})

it.concurrent('rejects a statement that the network holds up, and never sends the rest of it', async ({
  expect,
  onTestFinished,
}) => {
  const { direct, proxy, open, sessions } = await setUp(onTestFinished)
  const sql = open()
  const insert = (text: string) => sql`insert into nota select length(${text})`
  // The statement is prepared from now on, so the driver sends the text at once.
  await insert('x')
  proxy.pause()
  // The buffers of the network have no room for this text.
  expect(await failure(insert('x'.repeat(2 ** 25)))).toBe(NO_ANSWER)
  proxy.resume()
  await expect.poll(sessions, { timeout: 10_000 }).toEqual([])
  expect(await direct`select n from nota`).toEqual([{ n: 1 }])
})

it.concurrent('rejects statements within 8 s when the network goes silent, and then serves again', async ({
  expect,
  onTestFinished,
}) => {
  const { direct, proxy, open } = await setUp(onTestFinished)
  const sql = open(3)
  await openConnections(sql, direct, 3)
  proxy.silence()
  const begin = performance.now()
  const statements = Array.from({ length: 9 }, () => sql`select 1`.catch((error) => error))
  const errors = await Promise.all(statements)
  expect(performance.now() - begin).toBeLessThan(8000)
  const messages = errors.map(({ message }) => message)
  // The first statement without an answer resets the connections of the other two.
  expect(messages).toContain(NO_ANSWER)
  expect(messages.filter((m) => m === NO_ANSWER || m.includes('CONNECTION_CLOSED'))).toHaveLength(3)
  expect(errors.filter(({ code }) => code === 'busy')).toHaveLength(6)
  proxy.serve()
  expect(await sql`select 2 as n`).toEqual([{ n: 2 }])
})

it.concurrent('never sends a statement that it rejected while it was opening a connection', async ({
  expect,
  onTestFinished,
}) => {
  const { proxy, open } = await setUp(onTestFinished)
  const sql = open()
  proxy.silence()
  expect(await failure(sql`insert into nota values (1)`)).toContain(NOT_SENT)
  proxy.serve()
  expect(await sql`select n from nota`).toEqual([])
})

it.concurrent('connects to the next host when the first one refuses', async ({
  expect,
  onTestFinished,
}) => {
  const { proxy, logged, open } = await setUp(onTestFinished)
  const hosts = `127.0.0.1:1,${proxy.url.host}`
  const sql = open(1, proxy.url.href.replace(proxy.url.host, hosts))
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  expect(logged).toEqual([['the database serves again', proxy.host]])
})

it.concurrent('connects to the next host when the first one refuses the user', async ({
  expect,
  onTestFinished,
}) => {
  const { proxy, open } = await setUp(onTestFinished)
  const refusing = net.createServer((socket) => {
    socket.on('error', () => {})
    const fields = 'SFATAL\0VFATAL\0C28000\0Mno entry for the host\0\0'
    const head = Buffer.from('E\0\0\0\0')
    head.writeInt32BE(4 + fields.length, 1)
    socket.once('data', () => socket.end(Buffer.concat([head, Buffer.from(fields)])))
  })
  await once(refusing.listen(0, '127.0.0.1'), 'listening')
  const { port } = refusing.address() as AddressInfo
  const hosts = `127.0.0.1:${port},${proxy.url.host}`
  const sql = open(1, proxy.url.href.replace(proxy.url.host, hosts))
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  refusing.close()
})

it.concurrent('rejects a statement with the reason why no connection could be opened', async ({
  expect,
  onTestFinished,
}) => {
  const { open } = await setUp(onTestFinished)
  const sql = open(1, 'postgres://x:x@127.0.0.1:1/x')
  const begin = performance.now()
  expect(await failure(sql`select 1`)).toContain('ECONNREFUSED')
  expect(performance.now() - begin).toBeLessThan(8000)
})

it.concurrent('serves with its open connections when the server refuses new ones', async ({
  expect,
  onTestFinished,
}) => {
  const { database, direct, proxy, open } = await setUp(onTestFinished)
  const role = `cambia_${database.pathname.slice(1)}`
  await direct.unsafe(`create role ${role} login password 'x'`)
  const url = new URL(proxy.url)
  url.username = role
  url.password = 'x'
  const sql = open(2, url.href)
  await sql`select 1`
  await direct.unsafe(`alter role ${role} nologin`)
  const answers = [1, 2, 3].map((n) => sql`select ${n}::integer as n, pg_sleep(0.1)`)
  expect(await Promise.all(answers)).toHaveLength(3)
  await sql.end()
  await expect.poll(() => direct.unsafe(`drop role ${role}`)).toEqual([])
})

it.concurrent('rejects every statement after its end, and closes all connections', async ({
  expect,
  onTestFinished,
}) => {
  const { open, sessions } = await setUp(onTestFinished)
  const sql = open()
  const early = failure(sql`select 1`)
  await sql.end()
  expect(await early).toContain('the pool has ended')
  expect(await failure(sql`select 1`)).toContain('the pool has ended')
  await expect.poll(sessions).toEqual([])
})

it.concurrent('connects to a database whose name is percent-encoded in the URL', async ({
  expect,
  onTestFinished,
}) => {
  const { database, direct, proxy, open } = await setUp(onTestFinished)
  const name = `${database.pathname.slice(1)} ñ`
  await direct.unsafe(`create database "${name}"`)
  const sql = open(1, `${proxy.url.href}%20%C3%B1`)
  expect(await sql`select current_database() as name`).toEqual([{ name }])
  await sql.end()
  await direct.unsafe(`drop database "${name}" with (force)`)
})

it.concurrent('tries to open a connection at most ten times a second', async ({
  expect,
  onTestFinished,
}) => {
  const { proxy, open } = await setUp(onTestFinished)
  const sql = open()
  const before = proxy.connections()
  proxy.refuse()
  const begin = performance.now()
  expect(await failure(sql`select 1`)).toContain(NOT_SENT)
  const seconds = (performance.now() - begin) / 1000
  expect(proxy.connections() - before).toBeLessThanOrEqual(10 * seconds + 1)
})

it.concurrent('logs once that the database is lost and once that it serves again, with its host', async ({
  expect,
  onTestFinished,
}) => {
  const { direct, proxy, logged, open } = await setUp(onTestFinished)
  const sql = open(3)
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
})

it.concurrent('takes an error of the database as its answer: it serves again', async ({
  expect,
  onTestFinished,
}) => {
  const { proxy, logged, open } = await setUp(onTestFinished)
  const sql = open()
  proxy.refuse()
  expect(await failure(sql`select 1`)).toContain(NOT_SENT)
  proxy.serve()
  expect(await failure(sql`select 1 / 0`)).toBe('division by zero')
  expect(logged.slice(1)).toEqual([['the database serves again', proxy.host]])
})

it.concurrent('rejects a statement as busy if all connections are, although one could not be opened before', async ({
  expect,
  onTestFinished,
}) => {
  const { proxy, open } = await setUp(onTestFinished)
  const sql = open()
  proxy.refuse()
  const first = failure(sql`select 1`)
  await expect.poll(proxy.connections).toBeGreaterThan(0)
  proxy.serve()
  expect(await first).toBe('it did not fail')
  const slow = failure(sql`select pg_sleep(3)`)
  await expect(sql`select 1`).rejects.toMatchObject({ code: 'busy' })
  await slow
})

it.concurrent('goes on to the next host once, also if two statements could not be sent to a host', async ({
  expect,
  onTestFinished,
}) => {
  const { database, proxy, open } = await setUp(onTestFinished)
  const other = await startDatabaseProxy(database)
  onTestFinished(other.stop)
  const hosts = `${proxy.url.host},${other.url.host}`
  const sql = open(2, proxy.url.href.replace(proxy.url.host, hosts))
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
  onTestFinished,
}) => {
  const { database, proxy, logged, open } = await setUp(onTestFinished)
  const other = { host: database.hostname, port: Number(database.port) }
  const url = new URL(proxy.url)
  const hosts = `${proxy.url.host},${database.host}`
  const sql = open(2, url.href.replace(url.host, hosts))
  await sql`select 1`
  proxy.silence()
  const unanswered = failure(sql`select 1`)
  expect(await sql`select 2 as two`).toEqual([{ two: 2 }])
  expect(logged).toEqual([['the database serves again', other]])
  expect(await unanswered).toBe(NO_ANSWER)
})

it.concurrent('serves again after the server has terminated busy and idle sessions', async ({
  expect,
  onTestFinished,
}) => {
  const { direct, open } = await setUp(onTestFinished)
  const sql = open(3)
  const busy = [1, 2, 3].map(() => failure(sql`select pg_sleep(3)`))
  await expect.poll(() => sql.usage().running, { interval: 5 }).toBe(3)
  // The server answers when all sessions have ended. It waits at most 5 s for each of them.
  const end = () => direct`
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where application_name = 'llavero' and datname = current_database()
  `
  await end()
  for (const message of await Promise.all(busy)) expect(message).not.toBe(NO_ANSWER)
  await openConnections(sql, direct, 3)
  await end()
  await handleEvents()
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
})

it.concurrent('serves with two connections when the server refuses the others', async ({
  expect,
  onTestFinished,
}) => {
  const { database, direct, proxy, logged, open } = await setUp(onTestFinished)
  const role = `pocas_${database.pathname.slice(1)}`
  await direct.unsafe(`create role ${role} login password 'x' connection limit 2`)
  const limited = new URL(proxy.url)
  limited.username = role
  limited.password = 'x'
  const sql = open(4, limited.href)
  const answers = Array.from(
    { length: 12 },
    (_, n) => sql<{ n: number }[]>`select ${n}::integer as n, pg_sleep(0.05)`,
  )
  expect((await Promise.all(answers)).map(([row]) => row?.n)).toEqual([...answers.keys()])
  expect(logged).toEqual([])
  await sql.end()
  await expect.poll(() => direct.unsafe(`drop role ${role}`)).toEqual([])
})

it.concurrent('replaces connections that turn out to be read-only', async ({
  expect,
  onTestFinished,
}) => {
  const { database, direct, proxy, open } = await setUp(onTestFinished)
  const sql = open(2)
  await openConnections(sql, direct, 2)
  await direct.unsafe(
    `alter database ${database.pathname.slice(1)} set default_transaction_read_only = on`,
  )
  proxy.cut()
  await handleEvents()
  await openConnections(sql, direct, 2)
  await direct.unsafe(`
    set default_transaction_read_only = off;
    alter database ${database.pathname.slice(1)} reset default_transaction_read_only
  `)
  await expect(sql`insert into nota values (2)`).rejects.toMatchObject({ code: '25006' })
  expect(await sql`insert into nota values (2) returning n`).toEqual([{ n: 2 }])
  expect(await sql`insert into nota values (2) returning n`).toEqual([{ n: 2 }])
})

it.concurrent('sends no prepared statement with DATABASE_PREPARE=false', async ({
  expect,
  onTestFinished,
}) => {
  const { database, open } = await setUp(onTestFinished)
  const sql = open(1, database.href, { DATABASE_PREPARE: 'false' })
  await sql`select ${1}::integer`
  expect(await sql`select name from pg_prepared_statements`).toEqual([])
})

it.concurrent('when it ends, also closes the connection of a statement that is answered while another connection is still being opened', async ({
  expect,
  onTestFinished,
}) => {
  const { proxy, open, sessions } = await setUp(onTestFinished)
  const sql = open(2)
  await sql`select 1`
  const slow = failure(sql`select pg_sleep(0.5)`)
  proxy.hold()
  const unsent = failure(sql`select 1`)
  await expect.poll(() => sql.usage().running).toBe(2)
  await sql.end()
  expect(await slow).toBe('it did not fail')
  expect(await unsent).toContain(NOT_SENT)
  await expect.poll(sessions).toHaveLength(0)
})
