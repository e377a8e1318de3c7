import { setTimeout as sleep } from 'node:timers/promises'
import { describe, it, type TestContext } from 'vitest'
import { type Config, loadConfig } from '../src/config.js'
import { openPrimary } from '../src/database/connection.js'
import { openPool } from '../src/database/pool.js'
import { cloneDatabase } from './app.js'
import { connectTo } from './connect.js'
import { startDatabaseProxy } from './database-proxy.js'
import { letEventsPass } from './events.js'
import { openConnections } from './hold.js'
import { SECRETS } from './service.js'

/** How long the pool may take to answer a statement or to reject it, in milliseconds. */
const ANSWER_TIMEOUT = 4500
/** The same limit with a margin for timers that fire late on a busy machine. */
const IN_TIME = ANSWER_TIMEOUT + 3000
const SIZE = 3

type OnTestFinished = TestContext['onTestFinished']

/** Opens a pool that logs nothing. */
const openSilently = (config: Config) => openPool(config, { info: () => {}, error: () => {} })

/**
 * Opens a pool behind a proxy, and all connections of the pool. Each test has a database of its
 * own, so the tests run concurrently.
 */
async function openPoolBehindProxy(tls: boolean, onTestFinished: OnTestFinished) {
  const database = new URL(await cloneDatabase())
  const direct = connectTo(database.href)
  const proxy = await startDatabaseProxy(database, { tls })
  const env = { ...SECRETS, DATABASE_URL: proxy.url.href, DATABASE_POOL_MAX: String(SIZE) }
  const pool = openSilently(loadConfig(env))
  onTestFinished(async () => {
    proxy.serve()
    await pool.end()
    await proxy.stop()
  })
  const occupy = (seconds: number) =>
    Promise.allSettled(Array.from({ length: SIZE }, () => pool`select pg_sleep(${seconds})`))
  await openConnections(pool, direct, SIZE)

  return { proxy, pool, occupy }
}

/** The faults after which the driver knows that an idle connection is lost. */
const LOUD_FAULTS = ['cut', 'reset', 'halfClose'] as const
const FAULTS = [...LOUD_FAULTS, 'corrupt', 'silence'] as const

describe.concurrent.each([
  ['TCP', false],
  ['TLS', true],
])('over %s', (_name, tls) => {
  it.for(FAULTS)(
    'serves again after the fault %s on idle connections',
    async (fault, { expect, onTestFinished }) => {
      const { proxy, pool, occupy } = await openPoolBehindProxy(tls, onTestFinished)
      proxy[fault]()
      proxy.serve()
      // The first statements may be sent before the pool notices the fault, and may fail.
      const begin = performance.now()
      await occupy(0)
      expect(performance.now() - begin).toBeLessThan(IN_TIME)

      expect(await pool`select 1 as n`).toEqual([{ n: 1 }])
    },
  )

  it.for(FAULTS)(
    'serves again after the fault %s on busy connections',
    async (fault, { expect, onTestFinished }) => {
      const { proxy, pool, occupy } = await openPoolBehindProxy(tls, onTestFinished)
      const answers = occupy(3)
      await expect.poll(pool.usage).toEqual({ running: SIZE, waiting: 0 })
      proxy[fault]()
      proxy.serve()
      const begin = performance.now()
      const outcomes = await answers
      expect(performance.now() - begin).toBeLessThan(IN_TIME)
      for (const { status } of outcomes) expect(status).toBe('rejected')

      expect(await pool`select 1 as n`).toEqual([{ n: 1 }])
    },
  )

  it('sends the next statement over another connection when an idle one was lost', async ({
    expect,
    onTestFinished,
  }) => {
    const { proxy, pool } = await openPoolBehindProxy(tls, onTestFinished)
    for (const fault of LOUD_FAULTS) {
      proxy[fault]()
      await letEventsPass()
      expect(await pool`select 1 as n`).toEqual([{ n: 1 }])
    }
  })

  it('rejects a statement before its time limit when its connection breaks as it is sent', async ({
    expect,
    onTestFinished,
  }) => {
    const { proxy, pool } = await openPoolBehindProxy(tls, onTestFinished)
    const times: number[] = []
    async function ask() {
      const begin = performance.now()
      await pool`select 1`.catch(() => {})
      times.push(performance.now() - begin)
    }
    for (let round = 0; round < 20; round += 1) {
      proxy.reset()
      await Promise.all([ask(), sleep(round)])
      await ask()
    }
    // If the pool did not notice the loss, it would reject the statement only after ANSWER_TIMEOUT.
    expect(Math.max(...times)).toBeLessThan(ANSWER_TIMEOUT - 500)
  })

  it('serves again after new connections were accepted and closed', async ({
    expect,
    onTestFinished,
  }) => {
    const { proxy, pool, occupy } = await openPoolBehindProxy(tls, onTestFinished)
    proxy.hangUp()
    await letEventsPass()
    const begin = performance.now()
    for (const { status } of await occupy(0)) expect(status).toBe('rejected')
    expect(performance.now() - begin).toBeLessThan(IN_TIME)

    proxy.serve()
    expect(await pool`select 1 as n`).toEqual([{ n: 1 }])
  })

  it('serves again after faults while connections are being opened', async ({
    expect,
    onTestFinished,
  }) => {
    const { proxy, pool, occupy } = await openPoolBehindProxy(tls, onTestFinished)
    for (let round = 0; round < 20; round += 1) {
      proxy.cut()
      const answers = occupy(0)
      await sleep(round / 2)
      proxy[LOUD_FAULTS[round % LOUD_FAULTS.length] ?? 'cut']()
      await answers
    }
    // The statements of the last round may have been answered before the fault. Then the pool has
    // not noticed the fault yet, and the next statements may fail.
    await occupy(0)
    expect(await pool`select 1 as n`).toEqual([{ n: 1 }])
  })
})

it.concurrent('goes on to the next host, for the migrations and the pool, if the first one closes each connection over TLS', async ({
  expect,
  onTestFinished,
}) => {
  const database = new URL(await cloneDatabase())
  const broken = await startDatabaseProxy(database, { tls: true })
  const good = await startDatabaseProxy(database, { tls: true })
  broken.hangUp()
  const url = broken.url.href.replace(broken.url.host, `${broken.url.host},${good.url.host}`)
  const config = loadConfig({ ...SECRETS, DATABASE_URL: url })
  const sql = await openPrimary(config)
  const pool = openSilently(config)
  onTestFinished(async () => {
    await sql.end()
    await pool.end()
    await broken.stop()
    await good.stop()
  })
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  await expect(pool`select 1`).rejects.toThrow('not sent')
  expect(await pool`select 1 as n`).toEqual([{ n: 1 }])
  // Afterwards nobody connects to the first host.
  const attempts = broken.connections()
  await letEventsPass()
  expect(broken.connections()).toBe(attempts)
})

it('rejects a self-signed certificate with sslmode=verify-full', async ({
  expect,
  onTestFinished,
}) => {
  const database = new URL(await cloneDatabase())
  const proxy = await startDatabaseProxy(database, { tls: true })
  onTestFinished(proxy.stop)
  const url = proxy.url.href.replace('sslmode=require', 'sslmode=verify-full')
  const pool = openSilently(loadConfig({ ...SECRETS, DATABASE_URL: url }))
  onTestFinished(() => pool.end())
  await expect(pool`select 1`).rejects.toThrow('self-signed certificate')
})
