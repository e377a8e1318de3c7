import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ENDPOINTS, INTERNAL, NOT_READY, READY, usuario } from '../endpoints.js'
import { connectTo, type Database, startDatabase } from './database.js'
import { type Answer, type Service, startService } from './service.js'

const POOL_MAX = 10
const MAX_CONNECTIONS = 20
/** Of the disk that is filled, bytes. */
const DISK_SIZE = 32 * 1024 * 1024
/** Modules for permission records to name. */
const MODULOS = 300

let database: Database
let sql: postgres.Sql
let service: Service
let token: string

beforeAll(async () => {
  database = await startDatabase({ max_connections: `${MAX_CONNECTIONS}` })
  // A user as production has one: the connections that are kept for superusers are not for it.
  sql = connectTo(database.url)
  await sql`create role llavero login password 'clave-de-base'`
  await sql`create role otros login password 'clave-de-otros'`
  await sql`create database llavero owner llavero`
  sql = connectTo(urlFor('postgres', new URL(database.url).password))
  const DATABASE_URL = urlFor('llavero', 'clave-de-base')
  service = await startService({ DATABASE_URL, DATABASE_POOL_MAX: `${POOL_MAX}` })
  token = await service.login()
  await sql`
    insert into perfil ("strNombrePerfil") select 'Perfil ' || n from generate_series(2, 40) as n
  `
  await sql`
    insert into modulo ("strNombreModulo")
    select 'MODULO ' || n from generate_series(5, ${MODULOS}::integer) as n
  `
})

/** The service's database for a user. */
function urlFor(user: string, password: string) {
  return `postgres://${user}:${password}@127.0.0.1:${database.port}/llavero`
}

/** Mounts a small disk on `folder`, which only root can, and not in every container. */
function mountDisk(folder: string) {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_SIZE},mode=755`, 'tmpfs', folder])
    return true
  } catch {
    return false
  }
}

type Result = { name: string; ms: number; answer: Answer; failure: object }

const isDone = ({ answer: { status, body } }: Result) => status === 200 && body.success !== false

async function call(method: string, url: string, body: object | undefined, failure: object) {
  const since = performance.now()
  const answer = await service.call(method, url, body, token)
  return { name: `${method} ${url}`, ms: performance.now() - since, answer, failure }
}

/** Expects that each answer is a success or the contract's for an unexpected failure, within 5 s. */
function expectContract(results: Result[]) {
  const failed = results.filter((result) => !isDone(result))
  expect(failed.map(({ name, answer }) => ({ name, ...answer }))).toEqual(
    failed.map(({ name, failure }) => ({ name, ...failure })),
  )
  expect(results.filter(({ ms }) => ms > 5000)).toEqual([])
}

/** Every endpoint that can be called again and again, and those of them that hash no password. */
const REPEATABLE = ENDPOINTS.filter(
  ([method, url]) => method === 'GET' || /matriz|perfil.2|999|login/.test(url),
)
const LIGHT = REPEATABLE.filter(([, url]) => !/login|usuario/.test(url))

/** Calls them from 16 loops while `meanwhile` runs; gives all the answers. */
async function underLoad(meanwhile: () => Promise<void>, endpoints = LIGHT) {
  const results: Result[] = []
  let isOver = false
  const loops = Array.from({ length: 16 }, async (_, loop) => {
    for (let n = loop; !isOver; n++) {
      const [method, url, body, failure] = endpoints[n % endpoints.length] ?? []
      if (!method || !url || !failure) continue
      const result = await call(method, url, body, failure)
      results.push(result)
      if (!isDone(result)) await sleep(20)
    }
  })
  await sleep(300)
  await meanwhile().finally(() => {
    isOver = true
  })
  await Promise.all(loops)
  expectContract(results)
  expect(await service.call('GET', '/health/live')).toEqual(READY)
  return results
}

/** Expects all endpoints to serve 5 s from now, as many calls at once as there are connections. */
async function expectRecovery() {
  const until = performance.now() + 5000
  for (;;) {
    const results = await Promise.all(
      Array.from({ length: 2 * POOL_MAX }, (_, n) => {
        const [method, url, body, failure] = REPEATABLE[n % REPEATABLE.length] ?? []
        return call(method ?? '', url ?? '', body, failure ?? {})
      }),
    )
    if (results.every(isDone)) break
    expectContract(results)
    if (performance.now() > until) {
      throw new Error(`not back: ${JSON.stringify(results.filter((result) => !isDone(result)))}`)
    }
    await sleep(50)
  }
  expect(await service.call('GET', '/health/ready')).toEqual(READY)
}

const connections = () => sql`
  select pid from pg_stat_activity where application_name = 'llavero' and usename = 'llavero'
`

/** Nothing that a fault has cost is kept: after each of them, in this one process. */
afterEach(async () => {
  expect(service.child.exitCode).toBe(null)
  const settled = { timeout: 20_000, interval: 500 }
  await expect.poll(async () => (await connections()).length, settled).toBeLessThanOrEqual(POOL_MAX)
  // The pool, what the tests hold open, and what every process of Node has.
  await expect.poll(() => service.resources().handles, settled).toBeLessThan(100)
  expect(service.resources().memory).toBeLessThan(400)
}, 60_000)

describe('killed under writes of all kinds', () => {
  interface Write {
    method: string
    url: string
    body: object
  }
  interface Kind {
    /** The `n`-th write, counted from 0. */
    write(n: number): Write
    failure: object
    attempts: { n: number; isDone: boolean }[]
  }
  const failureOf = (method: string, url: string) =>
    ENDPOINTS.find(([m, u]) => m === method && u === url)?.[3] ?? {}
  const FLAGS = ['bitAgregar', 'bitEditar', 'bitConsulta', 'bitEliminar', 'bitDetalle']

  const entrada = (idModulo: number, bits: number) => ({
    idModulo,
    ...Object.fromEntries(FLAGS.map((flag, bit) => [flag, (bits & (1 << bit)) > 0])),
  })
  /** The `n`-th of the matrices, each different from all the others. */
  const matriz = (n: number) =>
    Array.from({ length: 40 }, (_, i) => entrada(1 + ((n + 7 * i) % MODULOS), 1 + (n % 31)))

  const kind = (failure: object, write: Kind['write']): Kind => ({ failure, write, attempts: [] })

  const usuarios = kind(INTERNAL, (n) => ({
    method: 'POST',
    url: '/api/usuario',
    body: usuario(`usuario-${n}`, { strNumeroCelular: `${n}` }),
  }))
  const modulos = kind(failureOf('POST', '/api/modulo'), (n) => ({
    method: 'POST',
    url: '/api/modulo',
    body: { strNombreModulo: `NUEVO ${n}` },
  }))
  const permisos = kind(INTERNAL, (n) => ({
    method: 'POST',
    url: '/api/permisos',
    body: { idPerfil: 20 + Math.floor(n / MODULOS), ...entrada(1 + (n % MODULOS), 1 + (n % 31)) },
  }))
  const MATRICES = [3, 4].map((idPerfil) => ({
    idPerfil,
    ...kind(failureOf('POST', '/api/permisos/guardar-matriz'), (n) => ({
      method: 'POST',
      url: '/api/permisos/guardar-matriz',
      body: { idPerfil, permisos: matriz(n) },
    })),
  }))
  const TOGGLES = [5, 6].map((idPerfil) => ({
    idPerfil,
    ...kind(failureOf('PUT', '/api/perfil/2'), (n) => ({
      method: 'PUT',
      url: `/api/perfil/${idPerfil}`,
      body: { strNombrePerfil: `Cambio ${n}`, bitAdministrador: n % 2 === 0 },
    })),
  }))
  const KINDS: Kind[] = [usuarios, modulos, permisos, ...MATRICES, ...TOGGLES]

  /** Writes of every kind, one after the other of each, while `meanwhile` runs. */
  async function underWrites(meanwhile: () => Promise<void>) {
    const results: Result[] = []
    let isOver = false
    const loops = KINDS.map(async ({ write, failure, attempts }) => {
      while (!isOver) {
        const n = attempts.length
        const { method, url, body } = write(n)
        const attempt = { n, isDone: false }
        attempts.push(attempt)
        const result = await call(method, url, body, failure)
        attempt.isDone = isDone(result)
        results.push(result)
        if (!attempt.isDone) await sleep(20)
      }
    })
    await sleep(500)
    await meanwhile().finally(() => {
      isOver = true
    })
    await Promise.all(loops)
    return results
  }

  const doneOf = ({ attempts }: Kind) => attempts.filter(({ isDone }) => isDone).map(({ n }) => n)

  /** The attempts of which one is what must be there now: the last one answered, or one after it. */
  function candidates({ attempts }: Kind) {
    const last = attempts.findLastIndex(({ isDone }) => isDone)
    expect(last).toBeGreaterThan(-1)
    return attempts.slice(last).map(({ n }) => n)
  }

  it.each([1, 2, 3])('serves again within 5 s of the database, time %i', async () => {
    const results = await underWrites(async () => {
      await database.kill()
      await sleep(600)
      await database.start()
      await expectRecovery()
      await sleep(300)
    })
    expectContract(results)
    expect(results.filter((result) => !isDone(result)).length).toBeGreaterThan(KINDS.length)
  })

  it('has every user, module and permission record that was answered, and none by half', async () => {
    expect(doneOf(usuarios).length).toBeGreaterThan(0)
    const stored = await sql`
      select "strNombreUsuario", "idPerfil", "strCorreo", "strNumeroCelular", "idEstadoUsuario",
        length("strPwd") as pwd
      from usuario where id > 1 and "strNombreUsuario" like 'usuario-%'
    `
    const numbers = stored.map(({ strNumeroCelular }) => Number(strNumeroCelular))
    expect([...stored]).toEqual(
      numbers.map((n) => {
        const { strPwd: _, ...columns } = usuario(`usuario-${n}`, { strNumeroCelular: `${n}` })
        return { ...columns, pwd: 60 }
      }),
    )
    expect(doneOf(usuarios).filter((n) => !numbers.includes(n))).toEqual([])

    const names = new Set(
      (await sql`select "strNombreModulo" as nombre from modulo`).map(({ nombre }) => nombre),
    )
    expect(doneOf(modulos).length).toBeGreaterThan(0)
    expect(doneOf(modulos).filter((n) => !names.has(`NUEVO ${n}`))).toEqual([])

    expect(doneOf(permisos).length).toBeGreaterThan(0)
    const rows = await sql`select * from permisos_perfil where "idPerfil" >= 20`
    const records = new Map(
      rows.map(({ id: _, ...row }) => [`${row.idPerfil} ${row.idModulo}`, row]),
    )
    for (const n of doneOf(permisos)) {
      const { idPerfil, idModulo } = permisos.write(n).body as Record<string, number>
      expect(records.get(`${idPerfil} ${idModulo}`)).toEqual(permisos.write(n).body)
    }
  })

  it('has of each profile the matrix that was answered last, or a later one, wholly', async () => {
    for (const kind of MATRICES) {
      const rows = await sql`
        select * from permisos_perfil where "idPerfil" = ${kind.idPerfil} order by "idModulo"
      `
      const stored = rows.map(({ id: _, idPerfil: __, ...entrada }) => entrada)
      const allowed = candidates(kind).map((n) => matriz(n).sort((a, b) => a.idModulo - b.idModulo))
      expect(allowed).toContainEqual(stored)
    }
  })

  it('has of each toggled profile the flag with every record, or neither', async () => {
    for (const kind of TOGGLES) {
      const [perfil] = await sql`
        select "strNombrePerfil" as nombre, "bitAdministrador" as flag, "numPermisos" as n
        from perfil where id = ${kind.idPerfil}
      `
      const allowed = candidates(kind).map((n) => ({ nombre: `Cambio ${n}`, flag: n % 2 === 0 }))
      expect(allowed).toContainEqual({ nombre: perfil?.nombre, flag: perfil?.flag })
      const [records] = await sql`
        select count(*)::integer as n, count(*) filter (where "idModulo" <= ${MODULOS})::integer as old,
          coalesce(bool_and("bitAgregar" and "bitEditar" and "bitConsulta" and "bitEliminar"
            and "bitDetalle"), true) as every
        from permisos_perfil where "idPerfil" = ${kind.idPerfil}
      `
      // Modules were created meanwhile: those that there were before have to be among them.
      expect(records).toEqual({ n: perfil?.n, old: perfil?.flag ? MODULOS : 0, every: true })
    }
  })
})

describe('hung for longer than every time limit', () => {
  it('fails in time, and is back when the database is', async () => {
    const readiness: Answer[] = []
    const liveness: Answer[] = []
    let thaw = () => {}
    await underLoad(async () => {
      thaw = database.freeze()
      for (const until = Date.now() + 12_000; Date.now() < until; await sleep(1000)) {
        liveness.push(await service.call('GET', '/health/live'))
        readiness.push(await service.call('GET', '/health/ready'))
      }
    }).finally(() => thaw())
    expect(readiness).toEqual(readiness.map(() => NOT_READY))
    expect(liveness).toEqual(liveness.map(() => READY))
    await expectRecovery()
  })
})

describe('without a connection to spare', () => {
  const others: postgres.Sql[] = []

  /** Takes every connection that there is but `spared`. */
  async function takeAllBut(spared: number) {
    for (;;) {
      const other = postgres(urlFor('otros', 'clave-de-otros'), { max: 1, onnotice: () => {} })
      try {
        await other`select 1`
        others.push(other)
      } catch (error) {
        expect((error as { code?: string }).code).toBe('53300')
        break
      }
    }
    await Promise.all(others.splice(0, spared).map((other) => other.end()))
  }
  const giveBack = () => Promise.all(others.splice(0).map((other) => other.end()))
  afterEach(giveBack)

  const terminate = () => sql`
    select pg_terminate_backend(pid) from pg_stat_activity where usename = 'llavero'
  `

  it('fails as the contract says where the service has none, and recovers', async () => {
    await terminate()
    await takeAllBut(0)
    const results = await underLoad(async () => {
      await sleep(2000)
      expect(await service.call('GET', '/health/ready')).toEqual(NOT_READY)
    })
    expect(results.filter(isDone)).toEqual([])
    await giveBack()
    await expectRecovery()
  })

  it('goes on with those that the service has, and recovers', async () => {
    await terminate()
    await takeAllBut(4)
    const done: number[] = []
    await underLoad(async () => {
      for (let second = 0; second < 5; second++) {
        const lists = await Promise.all(
          Array.from({ length: 10 }, () => call('GET', '/api/perfil/list', undefined, {})),
        )
        done.push(lists.filter(isDone).length)
        await sleep(500)
      }
    })
    expect(Math.min(...done)).toBeGreaterThan(0)
    await giveBack()
    await expectRecovery()
  })
})

describe('read-only', () => {
  const isRead = ({ name }: Result) => name.startsWith('GET')

  async function expectReadOnly() {
    const lists = () => call('GET', '/api/perfil/list', undefined, {})
    await expect.poll(async () => isDone(await lists()), { timeout: 5000 }).toBe(true)
    const results = await underLoad(() => sleep(1500))
    expect(results.filter((result) => isRead(result) !== isDone(result))).toEqual([])
    expect(await service.call('GET', '/health/ready')).toEqual(READY)
  }

  afterEach(async () => {
    await sql`set default_transaction_read_only = off`
    await sql`alter system reset default_transaction_read_only`
    await sql`alter database llavero reset default_transaction_read_only`
    await sql`select pg_reload_conf()`
    await expectRecovery()
  })

  it('for every session at once: reads are served, writes fail, until it is over', async () => {
    await sql`alter system set default_transaction_read_only = on`
    await sql`select pg_reload_conf()`
    // Until each session has heard of it.
    await sleep(500)
    await expectReadOnly()
  })

  it('for every session that begins meanwhile: the service does not stay with those', async () => {
    await sql`alter database llavero set default_transaction_read_only = on`
    // Waits until each is gone.
    await sql`
      select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = 'llavero'
    `
    await expectReadOnly()
  })
})

describe('with a full disk', () => {
  it('refuses what needs room, keeps what it had, and recovers', async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'llavero-disk-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    if (!mountDisk(folder)) return context.skip('this user may not mount a disk')
    onTestFinished(async () => {
      await database.stop()
      execFileSync('umount', [folder])
    })
    const filler = join(folder, 'filler')
    const location = join(folder, 'tablespace')
    execFileSync('cp', ['-a', join(database.dataDir, 'pg_tblspc'), location])
    await sql.unsafe(`create tablespace disco location '${location}'`)
    await sql`grant create on tablespace disco to llavero`
    await sql`alter table all in tablespace pg_default set tablespace disco`
    await sql`alter index all in tablespace pg_default set tablespace disco`
    const count = async () => {
      const [row] = await sql`select count(*)::integer as n from modulo`
      return row?.n as number
    }
    const before = await count()

    await expect(writeFile(filler, Buffer.alloc(DISK_SIZE))).rejects.toThrow('ENOSPC')
    const created: Result[] = []
    const failure = ENDPOINTS.find(
      ([method, url]) => `${method} ${url}` === 'POST /api/modulo',
    )?.[3]
    for (let n = 0; n < 5000; n++) {
      const strNombreModulo = `LLENO ${n} ${'x'.repeat(200)}`
      created.push(await call('POST', '/api/modulo', { strNombreModulo }, failure ?? {}))
      if (created.filter((result) => !isDone(result)).length === 10) break
    }
    expectContract(created)
    expect(created.filter((result) => !isDone(result))).toHaveLength(10)
    expect(await count()).toBe(before + created.filter(isDone).length)
    const lists = await underLoad(
      () => sleep(500),
      ENDPOINTS.filter(([method]) => method === 'GET'),
    )
    expect(lists.every(isDone)).toBe(true)

    await rm(filler)
    await expectRecovery()
    const again = await call('POST', '/api/modulo', { strNombreModulo: 'CABE' }, {})
    expect(isDone(again)).toBe(true)
  })
})
