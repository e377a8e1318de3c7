import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import postgres from 'postgres'
import { afterAll, expect, it } from 'vitest'
import { openPool } from '../src/pool.js'
import { cloneDatabase } from './app.js'

/** A way to the database that can be cut: what goes through it now gets no answer any more. */
const database = new URL(await cloneDatabase())
const open = new Set<Socket>()
const proxy = createServer((client) => {
  const server = connect(Number(database.port), database.hostname)
  client.pipe(server).pipe(client)
  for (const socket of [client, server]) {
    open.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => open.delete(socket))
  }
}).listen(0, '127.0.0.1')
await once(proxy, 'listening')
const url = new URL(database)
url.hostname = '127.0.0.1'
url.port = String((proxy.address() as AddressInfo).port)
const config = { databaseUrl: url.href, databasePoolMax: 1, databasePrepare: true }
afterAll(() => {
  for (const socket of open) socket.destroy()
  proxy.close()
})

const cut = () => {
  for (const socket of open) socket.unpipe()
}

it('is rid of connections that have gone silent', async () => {
  const sql = openPool(config)
  await sql`select 1`
  cut()
  await expect(sql`select 1`).rejects.toThrow('the database has not answered in time')
  await expect.poll(() => sql`select 2 as n`, { timeout: 2000 }).toEqual([{ n: 2 }])
  await sql.end({ timeout: 0 })
})

it('takes back what it could not send in time', async () => {
  const sql = openPool({ ...config, databaseUrl: database.href })
  const other = postgres(database.href, { max: 1 })
  await sql`create table escrito (n integer)`
  const blocked = other.begin(async (tx) => {
    await tx`lock table escrito`
    await new Promise((done) => setTimeout(done, 6000))
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
