import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../src/config.js'
import { openPool } from '../src/database/pool.js'
import { cloneDatabase } from './app.js'
import { startDatabaseProxy } from './database-proxy.js'
import { SECRETS } from './service.js'

/** The most that a statement may take to its answer or its failure, in milliseconds. */
const ANSWER_TIMEOUT = 4500
/** The same with room for timers that are late on a busy machine. */
const IN_TIME = ANSWER_TIMEOUT + 3000
const SIZE = 3

const database = new URL(await cloneDatabase())
const direct = postgres(database.href, { max: 1, onnotice: () => {} })
afterAll(() => direct.end())

/** A pool behind a proxy, with all of its connections open and idle. */
async function openPoolBehindProxy(tls: boolean) {
  const proxy = await startDatabaseProxy(database, { tls })
  const env = { ...SECRETS, DATABASE_URL: proxy.url.href, DATABASE_POOL_MAX: String(SIZE) }
  const pool = openPool(loadConfig(env), { info: () => {}, error: () => {} })
  onTestFinished(async () => {
    proxy.serve()
    await pool.end()
    await proxy.stop()
  })
  const ask = (seconds: number) => pool`select ${seconds}::float as n, pg_sleep(${seconds})`
  const occupy = (seconds: number) =>
    Promise.allSettled(Array.from({ length: SIZE }, () => ask(seconds)))
  await occupy(0.1)
  expect(proxy.connections()).toBe(SIZE)
  return { proxy, pool, occupy }
}

const LOUD_FAULTS = ['cut', 'reset', 'halfClose', 'corrupt'] as const
const FAULTS = [...LOUD_FAULTS, 'silence'] as const

describe.each([
  ['TCP', false],
  ['TLS', true],
])('over %s', (_name, tls) => {
  it.each(FAULTS)('survives %s while its connections are idle', async (fault) => {
    const { proxy, pool } = await openPoolBehindProxy(tls)
    proxy[fault]()
    proxy.serve()
    // The first statements may be sent before the pool can know of the fault.
    const begin = performance.now()
    await Promise.allSettled(Array.from({ length: SIZE }, () => pool`select 1`))
    expect(performance.now() - begin).toBeLessThan(IN_TIME)

    expect(await pool`select 1 as n`).toEqual([{ n: 1 }])
  })

  it.each(FAULTS)('survives %s while its connections are busy', async (fault) => {
    const { proxy, pool, occupy } = await openPoolBehindProxy(tls)
    const answers = occupy(1)
    await sleep(200)
    proxy[fault]()
    proxy.serve()
    const begin = performance.now()
    const outcomes = await answers
    expect(performance.now() - begin).toBeLessThan(IN_TIME)
    for (const { status } of outcomes) expect(status).toBe('rejected')

    expect(await pool`select 1 as n`).toEqual([{ n: 1 }])
  })

  it('fails no statement that comes after an idle connection was lost', async () => {
    const { proxy, pool } = await openPoolBehindProxy(tls)
    // Without TLS, corrupt bytes look like the beginning of a long message.
    const faults = tls ? LOUD_FAULTS : LOUD_FAULTS.filter((fault) => fault !== 'corrupt')
    for (const fault of faults) {
      proxy[fault]()
      await sleep(50)
      expect(await pool`select 1 as n`).toEqual([{ n: 1 }])
    }
  })

  it('rejects a statement at once that is sent while its connection is being lost', async () => {
    const { proxy, pool } = await openPoolBehindProxy(tls)
    const begin = performance.now()
    for (let round = 0; round < 20; round += 1) {
      proxy.reset()
      await Promise.allSettled([pool`select 1`, sleep(round)])
      await pool`select 1`.catch(() => {})
    }
    expect(performance.now() - begin).toBeLessThan(ANSWER_TIMEOUT)
  })

  it('survives faults while connections are being opened', async () => {
    const { proxy, pool, occupy } = await openPoolBehindProxy(tls)
    for (let round = 0; round < 20; round += 1) {
      proxy.cut()
      const answers = occupy(0)
      await sleep(round / 2)
      proxy[LOUD_FAULTS[round % LOUD_FAULTS.length] ?? 'cut']()
      await answers
    }
    // Without TLS, a connection with corrupt bytes on it is found by its next statement only.
    proxy.cut()
    await sleep(100)
    expect(await pool`select 1 as n`).toEqual([{ n: 1 }])
  })
})

it('refuses a certificate that nobody vouches for where DATABASE_URL asks to verify it', async () => {
  const proxy = await startDatabaseProxy(database, { tls: true })
  onTestFinished(proxy.stop)
  const url = proxy.url.href.replace('sslmode=require', 'sslmode=verify-full')
  const pool = openPool(loadConfig({ ...SECRETS, DATABASE_URL: url }), {
    info: () => {},
    error: () => {},
  })
  onTestFinished(() => pool.end())
  await expect(pool`select 1`).rejects.toThrow('self-signed certificate')
})
