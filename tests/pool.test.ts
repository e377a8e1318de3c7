import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import postgres from 'postgres'
import { afterAll, expect, it } from 'vitest'
import { openPool } from '../src/pool.js'
import { cloneDatabase } from './app.js'

/** A way to the database that can be cut: what goes through it now gets no answer any more. */
const database = new URL(await cloneDatabase())
const open = new Set<Socket>()
const pairs: [Socket, Socket][] = []
/** Whether those who come anew are let in and hear nothing. */
let isDeaf = false
function forward(client: Socket) {
  open.add(client)
  client.on('error', () => {})
  if (isDeaf) unheard.push(client)
  else hear(client)
}
const unheard: Socket[] = []
function hear(client: Socket) {
  const server = connect(Number(database.port), database.hostname)
  client.pipe(server).pipe(client)
  pairs.push([client, server])
  open.add(server)
  server.on('error', () => {})
}
const proxy = createServer(forward).listen(0, '127.0.0.1')
await once(proxy, 'listening')
const url = new URL(database)
url.hostname = '127.0.0.1'
url.port = String((proxy.address() as AddressInfo).port)
const config = { databaseUrl: url.href, databasePoolMax: 1, databasePrepare: true }
afterAll(() => {
  for (const socket of open) socket.destroy()
  proxy.close()
})

/** The name of a role of this database's own: others may work on the same server. */
const roleOf = (name: string) => `${name}_${database.pathname.slice(1)}`

const cut = () => {
  for (const socket of open) socket.unpipe()
}
/** What has been sent since the cut arrives after all. */
const mend = () => {
  for (const [client, server] of pairs) client.pipe(server).pipe(client)
}

it('is rid of connections that have gone silent', async () => {
  const sql = await openPool(config)
  await sql`select 1`
  cut()
  await expect(sql`select 1`).rejects.toThrow('the database has not answered in time')
  await expect.poll(() => sql`select 2 as n`, { timeout: 5000 }).toEqual([{ n: 2 }])
  await sql.end({ timeout: 0 })
})

it('lets no write that was given up come after one that was answered', async () => {
  const sql = await openPool({ ...config, databasePoolMax: 2 })
  await sql`create table nota (n integer)`
  const write = (n: number) => sql`insert into nota values (${n})`
  await Promise.all([write(0), write(0)])
  cut()
  isDeaf = true
  const ends = await Promise.allSettled([write(1), write(1)])
  expect(ends.map((end) => end.status === 'rejected' && end.reason.message)).toEqual([
    'the database has not answered in time',
    'the database has not answered in time',
  ])
  // Longer than it waits to be let in.
  await new Promise((done) => setTimeout(done, 2500))
  isDeaf = false
  for (const client of unheard.splice(0)) client.destroy()
  const answer = () => sql`select 1 as n`.catch(() => undefined)
  await expect.poll(answer, { timeout: 5000 }).toEqual([{ n: 1 }])
  await write(2)
  mend()
  await new Promise((done) => setTimeout(done, 500))
  expect(await sql`select n from nota order by n`).toEqual([{ n: 0 }, { n: 0 }, { n: 2 }])
  expect(sql.usage()).toEqual({ running: 0, waiting: 0 })
  await sql.end({ timeout: 0 })
})

it('sends nothing after a silence, be the other connections good, until it is over', async () => {
  const sql = await openPool({ ...config, databasePoolMax: 2 })
  await Promise.all([sql`select pg_sleep(0.1)`, sql`select pg_sleep(0.1)`])
  // The one that is asked next.
  const [cutOff] = await sql`select inet_client_port() as port`
  const [, server] = pairs.find(([, server]) => server.localPort === cutOff?.port) ?? []
  for (const [client, to] of pairs) if (to !== server) client.unpipe()
  isDeaf = true
  const ends = [sql`select 1`, sql`select 1`].map((query) => query.catch(({ message }) => message))
  expect(await Promise.all(ends)).toContain('the database has not answered in time')
  await expect(sql`select 1`).rejects.toThrow('no connection was free in time')
  isDeaf = false
  for (const client of unheard.splice(0)) client.destroy()
  const answer = () => sql`select 2 as n`.catch(() => undefined)
  await expect.poll(answer, { timeout: 5000 }).toEqual([{ n: 2 }])
  for (const socket of open) socket.destroy()
  await sql.end({ timeout: 0 })
})

it('never sends what it has given up while its connection was made', async () => {
  const admin = postgres(database.href, { max: 1 })
  await admin`create table tarde (n integer)`
  const sql = await openPool(config)
  isDeaf = true
  await expect(sql`insert into tarde values (1)`).rejects.toThrow('no connection was free in time')
  isDeaf = false
  for (const client of unheard.splice(0)) hear(client)
  await expect.poll(() => sql`select 2 as n`, { timeout: 5000 }).toEqual([{ n: 2 }])
  await new Promise((done) => setTimeout(done, 300))
  expect(await admin`select n from tarde`).toEqual([])
  await Promise.all([sql.end({ timeout: 0 }), admin.end({ timeout: 0 })])
})

it('ends no sessions of another host that bear the same numbers', async () => {
  const other = createServer((client) => {
    open.add(client)
    hear(client)
  }).listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  other.close()
  const two = url.href.replace(url.host, `${url.host},127.0.0.1:${port}`)
  const sql = await openPool({ ...config, databaseUrl: two })
  const [before] = await sql`select pg_backend_pid() as pid`
  const admin = postgres(database.href, { max: 1 })
  const sessions = () => admin`select pid from pg_stat_activity where pid = ${before?.pid}`
  isDeaf = true
  cut()
  await once(other.listen(port, '127.0.0.1'), 'listening')
  await expect(sql`select 1`).rejects.toThrow('the database has not answered in time')
  const answer = () => sql`select 2 as n`.catch(() => undefined)
  await expect.poll(answer, { timeout: 5000 }).toEqual([{ n: 2 }])
  expect(await sessions()).toEqual([before])
  isDeaf = false
  unheard.length = 0
  other.close()
  await Promise.all([sql.end({ timeout: 0 }), admin.end({ timeout: 0 })])
})

it('sends nothing to a connection that has just been reset', async () => {
  const sql = await openPool(config)
  await sql`select 1`
  const lost = sql`select pg_sleep(1)`.catch(({ code }) => code)
  const line = Array.from({ length: 5 }, (_, n) => sql`select ${n}::integer as n`)
  const answers = Promise.all(line)
  await new Promise((done) => setTimeout(done, 200))
  for (const socket of open) socket.resetAndDestroy()
  const begin = performance.now()
  expect((await answers).flat()).toEqual([0, 1, 2, 3, 4].map((n) => ({ n })))
  expect(performance.now() - begin).toBeLessThan(2000)
  expect(await lost).toBe('ECONNRESET')
  await sql.end({ timeout: 0 })
})

it('does not hammer what lets it in and closes, and is back once a server is behind it', async () => {
  const port = Number(url.port)
  let closed = 0
  const closing = createServer((client) => {
    closed += 1
    client.destroy()
  })
  proxy.close()
  for (const socket of open) socket.destroy()
  await once(closing.listen(port, '127.0.0.1'), 'listening')
  const sql = await openPool({ ...config, databasePoolMax: 2 })
  const asked = Promise.allSettled([sql`select 1`, sql`select 1`])
  await new Promise((done) => setTimeout(done, 1100))
  expect(closed).toBeGreaterThan(2)
  expect(closed).toBeLessThan(50)
  closing.close()
  await once(proxy.listen(port, '127.0.0.1'), 'listening')
  const answer = () => sql`select 2 as n`.catch(() => undefined)
  await expect.poll(answer, { timeout: 5000 }).toEqual([{ n: 2 }])
  await asked
  await sql.end({ timeout: 0 })
})

it('is rid of a silence where it may end no sessions', async () => {
  const admin = postgres(database.href, { max: 1 })
  const role = roleOf('mansa')
  await admin`create role ${admin(role)} login password 'clave'`
  await admin`revoke execute on function pg_terminate_backend from public`
  const own = new URL(url)
  own.username = role
  own.password = 'clave'
  const sql = await openPool({ ...config, databaseUrl: own.href })
  await sql`select 1`
  cut()
  await expect(sql`select 1`).rejects.toThrow('the database has not answered in time')
  const answer = () => sql`select 2 as n`.catch(() => undefined)
  await expect.poll(answer, { timeout: 5000 }).toEqual([{ n: 2 }])
  await sql.end({ timeout: 0 })
  await admin`grant execute on function pg_terminate_backend to public`
  for (const socket of open) socket.destroy()
  await admin`drop role ${admin(role)}`
  await admin.end({ timeout: 0 })
})

it('is rid of two silences, one after the other, of a database that may only be read', async () => {
  const admin = postgres(database.href, { max: 1 })
  const name = database.pathname.slice(1)
  await admin.unsafe(`alter database ${name} set default_transaction_read_only = on`)
  const sql = await openPool({ ...config, databasePoolMax: 2 })
  await Promise.all([sql`select pg_sleep(0.1)`, sql`select pg_sleep(0.1)`])
  cut()
  isDeaf = true
  const silence = () => sql`select 1`.catch(({ message }) => message)
  const first = silence()
  await new Promise((done) => setTimeout(done, 200))
  const second = silence()
  expect(await first).toBe('the database has not answered in time')
  expect(await second).toBe('the database has not answered in time')
  await new Promise((done) => setTimeout(done, 200))
  isDeaf = false
  for (const client of unheard.splice(0)) hear(client)
  const answer = () => sql`select 2 as n`.catch(() => undefined)
  await expect.poll(answer, { timeout: 3000 }).toEqual([{ n: 2 }])
  await admin.unsafe(`alter database ${name} reset default_transaction_read_only`)
  await Promise.all([sql.end({ timeout: 0 }), admin.end({ timeout: 0 })])
})

it('looks for no host any more once it has been ended', async () => {
  const two = url.href.replace(url.host, `${url.host},${url.host}`)
  const reasons: string[] = []
  const sql = await openPool({ ...config, databaseUrl: two }, ({ message }) =>
    reasons.push(message),
  )
  await sql`select 1`
  isDeaf = true
  for (const socket of open) socket.destroy()
  await expect.poll(() => unheard.length).toBeGreaterThanOrEqual(2)
  await new Promise((done) => setTimeout(done, 300))
  await sql.end({ timeout: 0 })
  const asked = unheard.length
  // A probe gives up after 2 s.
  await new Promise((done) => setTimeout(done, 2700))
  expect(unheard).toHaveLength(asked)
  expect(reasons).toEqual([])
  isDeaf = false
  unheard.length = 0
})

it('sends nothing behind a statement that waits', async () => {
  const sql = await openPool({ ...config, databaseUrl: database.href, databasePoolMax: 3 })
  const slow = sql`select pg_sleep(1)`.then(() => 'slow')
  const quick = Array.from({ length: 20 }, () => sql`select 1`)
  expect(await Promise.race([slow, Promise.all(quick).then(() => 'quick')])).toBe('quick')
  expect(sql.usage()).toEqual({ running: 1, waiting: 0 })
  const sleeps = Array.from({ length: 6 }, () => sql`select pg_sleep(0.2)`.execute())
  await new Promise((done) => setTimeout(done, 100))
  expect(sql.usage()).toEqual({ running: 3, waiting: 4 })
  await Promise.all([slow, ...sleeps])
  expect(sql.usage()).toEqual({ running: 0, waiting: 0 })
  await sql.end({ timeout: 0 })
})

it('comes back once one of several hosts does, and waits less for silent ones meanwhile', async () => {
  const two = url.href.replace(url.host, `${url.host},${url.host}`)
  const sql = await openPool({ ...config, databaseUrl: two })
  await sql`select 1`
  isDeaf = true
  cut()
  await expect(sql`select 1`).rejects.toThrow('the database has not answered in time')
  const begin = performance.now()
  await expect(sql`select 1`).rejects.toThrow('no connection was free in time')
  expect(performance.now() - begin).toBeLessThan(2000)
  isDeaf = false
  for (const socket of open) socket.destroy()
  const answer = () => sql`select 2 as n`.catch(() => undefined)
  await expect.poll(answer, { timeout: 10_000 }).toEqual([{ n: 2 }])
  await sql.end({ timeout: 0 })
})

it('looks again and again while none of several hosts serves', async () => {
  const two = url.href.replace(url.host, `${url.host},${url.host}`)
  const reasons: string[] = []
  const sql = await openPool({ ...config, databaseUrl: two }, ({ message }) =>
    reasons.push(message),
  )
  for (const outages of [1, 2]) {
    await sql`select 1`
    proxy.close()
    for (const socket of open) socket.destroy()
    await new Promise((done) => setTimeout(done, 800))
    await expect(sql`select 1`).rejects.toThrow()
    await once(proxy.listen(Number(url.port), '127.0.0.1'), 'listening')
    const answer = () => sql`select 2 as n`.catch(() => undefined)
    await expect.poll(answer, { timeout: 5000 }).toEqual([{ n: 2 }])
    expect(reasons).toHaveLength(outages)
    // The next round finds a host again.
    await new Promise((done) => setTimeout(done, 500))
  }
  expect(reasons[0]).toMatch(/^no host of the database serves: .*ECONNREFUSED.*; .*/)
  await sql.end({ timeout: 0 })
})

it('works off what it has when it has lost a connection, and then has only new ones', async () => {
  const admin = postgres(database.href, { max: 1 })
  const sessions = async () => {
    const rows = await admin<{ pid: number }[]>`
      select pid from pg_stat_activity
      where application_name = 'llavero' and datname = current_database()
    `
    return rows.map(({ pid }) => pid)
  }
  const sql = await openPool({ ...config, databaseUrl: database.href, databasePoolMax: 2 })
  const pid = async () => (await sql`select pg_backend_pid() as pid`)[0]?.pid
  await expect(sql`select 1 / 0`).rejects.toMatchObject({ code: '22012' })
  const slow = sql`select pg_backend_pid() as pid, pg_sleep(2.5)`.then((rows) => rows)
  const lost = await pid()
  const before = await sessions()
  expect(before).toHaveLength(2)
  await admin`select pg_terminate_backend(${lost})`
  await new Promise((done) => setTimeout(done, 400))
  const now = await pid()
  expect(before).not.toContain(now)
  expect(await slow).toMatchObject([{ pid: before.find((pid) => pid !== lost) }])
  await expect.poll(sessions, { timeout: 2000 }).toEqual([now])
  await sql.end({ timeout: 0 })
  await admin.end({ timeout: 0 })
})

it('reaches a host by its IPv6 address, with a password of any characters', async (context) => {
  const v6 = createServer(forward).listen(0, '::1')
  const [error] = await Promise.race([once(v6, 'listening'), once(v6, 'error')])
  if (error) return context.skip('no IPv6 here')
  const admin = postgres(database.href, { max: 1 })
  const password = 'a,b@c%d:é&?'
  const role = roleOf('lectora')
  await admin.unsafe(`create role ${role} login password '${password}'`)
  const own = new URL(url)
  own.username = role
  own.password = encodeURIComponent(password)
  own.hostname = '[::1]'
  own.port = String((v6.address() as AddressInfo).port)
  const sql = await openPool({ ...config, databaseUrl: own.href })
  expect(await sql`select session_user as usuario`).toEqual([{ usuario: role }])
  await sql.end({ timeout: 0 })
  await admin`drop role ${admin(role)}`
  await admin.end()
  v6.close()
})

it.each([
  { databasePrepare: true, statements: '4s', transactions: '4s' },
  { databasePrepare: false, statements: '0', transactions: '0' },
])('limits its sessions where they are its own, %j', async ({ databasePrepare, ...limits }) => {
  const databaseUrl = database.href
  const admin = postgres(databaseUrl, { max: 1 })
  const name = database.pathname.slice(1)
  await admin.unsafe(`alter database ${name} set default_transaction_isolation = 'serializable'`)
  const sql = await openPool({ ...config, databaseUrl, databasePrepare })
  const [settings] = await sql`
    select current_setting('application_name') as name,
      current_setting('statement_timeout') as statements,
      current_setting('idle_in_transaction_session_timeout') as transactions,
      current_setting('default_transaction_isolation') as isolation
  `
  const isolation = databasePrepare ? 'read committed' : 'serializable'
  expect(settings).toEqual({ name: 'llavero', isolation, ...limits })
  const [prepared] = await sql`select count(*)::integer as n from pg_prepared_statements`
  expect(prepared?.n).toBe(databasePrepare ? 2 : 0)
  await admin.unsafe(`alter database ${name} reset default_transaction_isolation`)
  await Promise.all([sql.end({ timeout: 0 }), admin.end({ timeout: 0 })])
})

it('is on the one of several hosts that can be written to', async () => {
  const dead = new URL(database)
  dead.port = '1'
  const two = database.href.replace(database.host, `${dead.host},${database.host}`)
  for (const attrs of ['', 'target_session_attrs=any']) {
    const databaseUrl = `${two}${two.includes('?') ? '&' : '?'}${attrs}`
    const sql = await openPool({ ...config, databaseUrl })
    expect(await sql`select inet_server_port() is not null as n`).toEqual([{ n: true }])
    await sql.end({ timeout: 0 })
  }
})

it('does not open where none of several hosts serves, and tells no password', async () => {
  const url = 'postgres://u:clave-de-base@127.0.0.1:1,127.0.0.1:2/d'
  const opening = openPool({ ...config, databaseUrl: url })
  await expect(opening).rejects.toThrow(
    'no host of the database serves: connect ECONNREFUSED 127.0.0.1:1; connect ECONNREFUSED 127.0.0.1:2',
  )
})

it('does not open where all of several hosts are silent, or slow to say so', async () => {
  const listen = async (onClient: (client: Socket) => void) => {
    const server = createServer((client) => {
      open.add(client)
      onClient(client)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { server, port: (server.address() as AddressInfo).port }
  }
  const silent = await listen(() => {})
  // Lets everybody in and is ready, as the protocol says it, and then does not answer.
  const letIn = Buffer.from('5200000008000000005a0000000549', 'hex')
  const hanging = await listen((client) => client.once('data', () => client.write(letIn)))
  const url = `postgres://u@127.0.0.1:${silent.port},127.0.0.1:${hanging.port}/d`
  await expect(openPool({ ...config, databaseUrl: url })).rejects.toThrow(
    `serves: write CONNECT_TIMEOUT 127.0.0.1:${silent.port}; the database has not answered in time`,
  )
  const connections = ({ server }: typeof silent) =>
    new Promise((resolve) => server.getConnections((_, count) => resolve(count)))
  await expect.poll(() => connections(hanging)).toBe(0)
  silent.server.close()
  hanging.server.close()
})

it('asks of several hosts what it is told to, and leaves no connection behind', async () => {
  const admin = postgres(database.href, { max: 1 })
  const role = roleOf('lee')
  await admin`create role ${admin(role)} login password 'clave'`
  await admin`alter role ${admin(role)} set default_transaction_read_only = on`
  const own = new URL(database)
  own.username = role
  own.password = 'clave'
  const two = own.href.replace(own.host, `${own.host},${own.host}`)
  await expect(openPool({ ...config, databaseUrl: two })).rejects.toThrow(
    `serves: ${own.host} is not read-write; ${own.host} is not read-write`,
  )
  for (const attrs of ['any', 'primary']) {
    const databaseUrl = `${two}${two.includes('?') ? '&' : '?'}target_session_attrs=${attrs}`
    const sql = await openPool({ ...config, databaseUrl })
    expect(await sql`select session_user as usuario`).toEqual([{ usuario: role }])
    await sql.end({ timeout: 0 })
  }
  const sessions = () => admin`select pid from pg_stat_activity where usename = ${role}`
  await expect.poll(sessions).toEqual([])
  await admin`drop role ${admin(role)}`
  await admin.end()
})

it('is rid of sessions that are read-only once others are not', async () => {
  const admin = postgres(database.href, { max: 1, onnotice: () => {} })
  const name = database.pathname.slice(1)
  await admin`create table apunte (n integer)`
  await admin.unsafe(`alter database ${name} set default_transaction_read_only = on`)
  const reasons: string[] = []
  const own = { ...config, databaseUrl: database.href }
  const sql = await openPool(own, ({ message }) => reasons.push(message))
  const write = () => sql`insert into apunte values (1)`.then(() => 'done', String)
  expect(await write()).toMatch(/read-only transaction/)
  const asked = `no host of the database serves: ${database.host} is not read-write`
  await expect.poll(() => reasons).toEqual([asked])
  await admin.unsafe(`alter database ${name} reset default_transaction_read_only`)
  await expect.poll(write, { timeout: 2000 }).toBe('done')
  await Promise.all([sql.end({ timeout: 0 }), admin.end({ timeout: 0 })])
})

it('keeps the connections that it has when the server has no more', async () => {
  const admin = postgres(database.href, { max: 1 })
  const role = roleOf('escasa')
  await admin`create role ${admin(role)} login password 'clave' connection limit 2`
  const own = new URL(database)
  own.username = role
  own.password = 'clave'
  const sql = await openPool({ ...config, databaseUrl: own.href, databasePoolMax: 3 })
  const pid = async () => (await sql`select pg_backend_pid() as pid, pg_sleep(0.2)`)[0]?.pid
  const pids = async () => (await Promise.all([pid(), pid()])).toSorted()
  const before = await pids()
  const ends = await Promise.allSettled([pid(), pid(), pid()])
  expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
  expect(ends).toContainEqual({
    status: 'rejected',
    reason: expect.objectContaining({ code: '53300' }),
  })
  const few = await Promise.allSettled(Array.from({ length: 6 }, pid))
  expect(few.filter(({ status }) => status === 'rejected')).toEqual([])
  await new Promise((done) => setTimeout(done, 500))
  expect(await pids()).toEqual(before)
  // Nor does it give them up once there are more, which it uses then.
  await admin`alter role ${admin(role)} connection limit 10`
  await new Promise((done) => setTimeout(done, 1500))
  expect(await pids()).toEqual(before)
  expect(new Set(await Promise.all([pid(), pid(), pid()])).size).toBe(3)
  // And is still told when one of them is lost.
  await admin`select pg_terminate_backend(${before[0]})`
  const now = () => pids().catch(() => before)
  await expect.poll(now, { timeout: 5000 }).not.toContain(before[1])
  await sql.end({ timeout: 0 })
  await admin`drop role ${admin(role)}`
  await admin.end({ timeout: 0 })
})

it.each(['login', 'connect'])('keeps the connections it has when it may not %s', async (right) => {
  const admin = postgres(database.href, { max: 1 })
  const role = roleOf('vieja')
  await admin`create role ${admin(role)} login password 'clave'`
  const own = new URL(database)
  own.username = role
  own.password = 'clave'
  const sql = await openPool({ ...config, databaseUrl: own.href, databasePoolMax: 2 })
  const pid = async () => (await sql`select pg_backend_pid() as pid, pg_sleep(0.1)`)[0]?.pid
  const [lost, kept] = await Promise.all([pid(), pid()])
  const name = database.pathname.slice(1)
  if (right === 'login') await admin`alter role ${admin(role)} nologin`
  else await admin`revoke connect on database ${admin(name)} from public`
  await admin`select pg_terminate_backend(${lost})`
  await new Promise((done) => setTimeout(done, 600))
  for (let count = 0; count < 5; count += 1) expect(await pid()).toBe(kept)
  if (right === 'login') await admin`alter role ${admin(role)} login`
  else await admin`grant connect on database ${admin(name)} to public`
  await expect.poll(pid, { timeout: 3000 }).not.toBe(kept)
  await sql.end({ timeout: 0 })
  await admin`drop role ${admin(role)}`
  await admin.end({ timeout: 0 })
})

it('takes back what it could not send in time', async () => {
  const sql = await openPool({ ...config, databaseUrl: database.href })
  const other = postgres(database.href, { max: 1 })
  await sql`create table escrito (n integer)`
  const blocked = other.begin(async (tx) => {
    await tx`lock table escrito`
    // Long enough for the queries to be given up, and not for the connections.
    await new Promise((done) => setTimeout(done, 5100))
  })
  await new Promise((done) => setTimeout(done, 200))
  const writes = Array.from({ length: 150 }, (_, n) => sql`insert into escrito values (${n})`)
  const ends = await Promise.allSettled(writes)
  await blocked
  await new Promise((done) => setTimeout(done, 500))
  const [row] = await sql<[{ n: number }]>`select count(*)::integer as n from escrito`
  const done = ends.filter(({ status }) => status === 'fulfilled').length
  const sent = ends.filter(
    (end) => end.status === 'rejected' && end.reason.message.includes('has not answered'),
  ).length
  const takenBack = ends.filter(
    (end) => end.status === 'rejected' && end.reason.message.includes('no connection was free'),
  ).length
  expect(takenBack).toBeGreaterThan(0)
  expect(row.n).toBeGreaterThanOrEqual(done)
  expect(row.n).toBeLessThanOrEqual(done + sent)
  await Promise.all([sql.end({ timeout: 0 }), other.end({ timeout: 0 })])
})
