import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { READY } from '../answers.js'
import { closeAtEnd } from '../cleanup.js'
import { connectTo } from '../connect.js'
import { startDatabaseProxy } from '../database-proxy.js'
import { hasEnded, launch, SECRETS } from '../service.js'
import { type Database, newFolder, startDatabase } from './database.js'
import { type Service, startService } from './service.js'

/** Starts a primary and a synchronous standby, which has every write that the primary confirmed. */
async function startPair() {
  const first = await startDatabase()
  await first.stop()
  const folder = newFolder()
  const run = promisify(execFile)
  await run('cp', ['-a', first.folder, folder])
  // standby.signal may have any content. It is made with `cp -a`, so that it belongs to the user of
  // the server, who need not be the user of the tests.
  await run('cp', ['-a', `${folder}/data/PG_VERSION`, `${folder}/data/standby.signal`])
  await first.start()
  const { password } = new URL(first.url)
  const standby = await startDatabase(
    { primary_conninfo: `host=127.0.0.1 port=${first.port} user=postgres password=${password}` },
    folder,
  )
  const sql = connectTo(first.url)
  await sql`alter system set synchronous_standby_names = '*'`
  await sql`select pg_reload_conf()`
  while ((await sql`select from pg_stat_replication where sync_state = 'sync'`).length === 0) {
    await sleep(50)
  }
  return { primary: first, standby, password }
}

/** Returns the URL of several servers that have the same password. */
function addressOf(...databases: Database[]) {
  const { password } = new URL(databases[0]?.url ?? '')
  const hosts = databases.map(({ port }) => `127.0.0.1:${port}`)
  return `postgres://postgres:${password}@${hosts.join(',')}/postgres`
}

async function promote(standby: Database) {
  await connectTo(standby.url)`select pg_promote()`
}

let service: Service
let token: string
let names: string[] = []

async function create() {
  const strNombreModulo = `M${names.length}-${Date.now()}`
  const { body } = await service.call('POST', '/api/modulo', { strNombreModulo }, token)
  if (body?.success) names.push(strNombreModulo)
  return body?.success === true
}

/** Waits until a write succeeds; returns how long that took, in milliseconds. */
async function untilWritten() {
  const since = Date.now()
  while (!(await create())) await sleep(50)
  return Date.now() - since
}

/** Creates modules in several loops until `isOver`. */
const load = (isOver: () => boolean) =>
  Promise.all(
    Array.from({ length: 4 }, async (_, loop) => {
      await sleep(loop)
      while (!isOver()) if (!(await create())) await sleep(20)
    }),
  )

describe.each<[string, (primary: Database) => unknown]>([
  ['killed', (primary) => primary.kill()],
  ['turned into a black hole', (primary) => primary.freeze()],
])('a primary with a standby, before and after it is %s', (_, fail) => {
  let pair: Awaited<ReturnType<typeof startPair>>

  beforeAll(async () => {
    names = []
    pair = await startPair()
    const DATABASE_URL = addressOf(pair.standby, pair.primary)
    service = await startService({ DATABASE_URL })
    token = await service.login()
  })

  it('is used although DATABASE_URL names the standby first, on which require_primary fails', async () => {
    expect(await create()).toBe(true)
    const query = connectTo(pair.standby.url)`select require_primary()`
    await expect(query).rejects.toMatchObject({ code: '25006' })
  })

  it('is replaced by the promoted standby within 10 s, without losing a confirmed write', async () => {
    let isOver = false
    const loading = load(() => isOver)
    await sleep(500)
    await fail(pair.primary)
    await promote(pair.standby)
    expect(await untilWritten()).toBeLessThan(10_000)
    isOver = true
    await loading

    const rows = await connectTo(pair.standby.url)`select "strNombreModulo" as nombre from modulo`
    const stored = new Set(rows.map(({ nombre }) => nombre))
    expect(names.length).toBeGreaterThan(10)
    expect(names.filter((name) => !stored.has(name))).toEqual([])
    expect(hasEnded(service.child)).toBe(false)
    expect(service.readLog()).not.toContain(pair.password)
    const served = () => service.lines().filter(({ msg }) => msg === 'the database serves again')
    const line = { level: 30, host: '127.0.0.1' }
    await expect.poll(served).toMatchObject([
      { ...line, port: pair.primary.port },
      { ...line, port: pair.standby.port },
    ])
  })

  it('does not keep another service from starting', async () => {
    const other = await startService({ DATABASE_URL: addressOf(pair.primary, pair.standby) })
    expect(await other.call('GET', '/health/ready')).toEqual(READY)
  })
})

it('a service that can use no host prints the hosts that it tried, without the password', async () => {
  const { primary, standby, password } = await startPair()
  await primary.kill()
  const { ended } = launch({ ...SECRETS, PORT: '0', DATABASE_URL: addressOf(primary, standby) })
  const { stderr, ...end } = await ended
  expect(end).toEqual({ code: 1, signal: null })
  expect(stderr).toContain(`ECONNREFUSED 127.0.0.1:${primary.port}`)
  expect(stderr).toContain(`127.0.0.1:${standby.port} write CONNECTION_DESTROYED`)
  expect(stderr).not.toContain(password)
})

describe('while a proxy leads to a paused standby instead of the primary', () => {
  it.each(['the proxy alone', 'the proxy and the standby'])(
    'requests fail and get no old data, with %s in DATABASE_URL',
    async (hosts) => {
      const { primary, standby } = await startPair()
      // The proxy leads to the one server, and after a switchover to the other one.
      const target = new URL(addressOf(primary))
      const proxy = await startDatabaseProxy(target)
      closeAtEnd(proxy.stop)
      const { port } = proxy.host
      const DATABASE_URL =
        hosts === 'the proxy and the standby'
          ? proxy.url.href.replace(`${port}`, `${port},127.0.0.1:${standby.port}`)
          : proxy.url.href
      const service = await startService({ DATABASE_URL })
      const token = await service.login()
      const list = (token: string) => service.call('GET', '/api/perfil/list', undefined, token)
      expect((await list(token)).status).toBe(200)

      await connectTo(standby.url)`select pg_wal_replay_pause()`
      // The standby still has the session that ends now, and not the one that begins.
      expect((await service.call('POST', '/api/auth/logout', undefined, token)).status).toBe(200)
      const next = await service.login()
      target.port = `${standby.port}`
      proxy.cut()
      for (let ask = 0; ask < 3; ask++) {
        expect((await list(token)).status).toBe(500)
        expect((await list(next)).status).toBe(500)
        expect((await service.call('GET', '/health/ready')).status).toBe(503)
      }
      target.port = `${primary.port}`
      await expect.poll(async () => (await list(next)).status, { timeout: 10_000 }).toBe(200)
    },
  )
})
