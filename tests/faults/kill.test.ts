import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { beforeAll, expect, it } from 'vitest'
import { connectTo, type Database, startDatabase } from './database.js'
import { startService } from './service.js'

const KILLS = 100
/** Services that start while others are being killed. */
const AHEAD = 3
/** The latest that one is killed, in milliseconds after its first answer; a write takes some 20. */
const LATEST = 100
/** So many that the database is at a write for longer than the service. */
const MODULOS = 200
const SEED = Number(process.env.FAULTS_SEED ?? Date.now() % 2 ** 31)

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
function randomFrom(seed: number) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** What one profile is: its flag and its records. */
interface Estado {
  administrador: boolean
  permisos: { idModulo: number; bits: string }[]
}

const every = (bits: string) =>
  Array.from({ length: MODULOS }, (_, i) => ({ idModulo: i + 1, bits }))

/** The `n`-th matrix: other modules and other flags than the one before. */
const matriz = (n: number): Estado => ({
  administrador: false,
  permisos: every((1 + (n % 31)).toString(2).padStart(5, '0')).filter(
    ({ idModulo }) => (idModulo + n) % 3 > 0,
  ),
})
const toggled = (n: number): Estado => ({
  administrador: n % 2 === 1,
  permisos: n % 2 === 1 ? every('11111') : [],
})

const FLAGS = ['bitAgregar', 'bitEditar', 'bitConsulta', 'bitEliminar', 'bitDetalle']

/** A profile that is written again and again, and how. */
interface Perfil {
  id: number
  path: string
  method: string
  body(n: number): object
  estado(n: number): Estado
  /** The number of the write that is known to be there. */
  known: number
  /** The number of the write that has no answer. */
  underWay: number
}

const PERFILES: Perfil[] = [2, 3, 4, 5, 6, 7].map((id) => {
  const numbers = { id, known: 0, underWay: 0 }
  if (id > 5) {
    return {
      ...numbers,
      method: 'PUT',
      path: `/api/perfil/${id}`,
      body: (n) => ({ strNombrePerfil: 'Cambiante', bitAdministrador: toggled(n).administrador }),
      estado: toggled,
    }
  }
  return {
    ...numbers,
    method: 'POST',
    path: '/api/permisos/guardar-matriz',
    body: (n) => ({
      idPerfil: id,
      permisos: matriz(n).permisos.map(({ idModulo, bits }) => ({
        idModulo,
        ...Object.fromEntries(FLAGS.map((flag, i) => [flag, bits[i] === '1'])),
      })),
    }),
    estado: (n) => (n === 0 ? toggled(0) : matriz(n)),
  }
})

let database: Database
let sql: ReturnType<typeof connectTo>
let token: string

beforeAll(async () => {
  database = await startDatabase()
  sql = connectTo(database.url)
  const first = await startService({ DATABASE_URL: database.url })
  token = await first.login()
  await sql`
    insert into perfil ("strNombrePerfil") select 'Perfil ' || n from generate_series(2, 7) as n
  `
  await sql`
    insert into modulo ("strNombreModulo")
    select 'MODULO ' || n from generate_series(5, ${MODULOS}::integer) as n
  `
  first.child.kill('SIGKILL')
})

/** One more service, whose connections are told from those of the others by `name`. */
const startNamed = (name: string) =>
  startService({
    DATABASE_URL: `${database.url}?application_name=${name}`,
    ADMIN_USERNAME: '',
    ADMIN_PASSWORD: '',
    ADMIN_EMAIL: '',
  })

/** Waits until the database is at a write for that service. */
async function seeWriting(name: string) {
  for (let rows = 0; rows === 0; ) {
    const writing = await sql`
      select from pg_stat_activity
      where application_name = ${name} and state = 'active' and query ~ 'replace_permisos|update_perfil'
    `
    rows = writing.length
  }
}

/** What each profile is now. */
async function readEstados(): Promise<Estado[]> {
  const rows = await sql<{ administrador: boolean; permisos: Estado['permisos'] }[]>`
    select "bitAdministrador" as administrador, coalesce((
      select jsonb_agg(jsonb_build_object('idModulo', "idModulo", 'bits',
        concat("bitAgregar"::integer, "bitEditar"::integer, "bitConsulta"::integer,
          "bitEliminar"::integer, "bitDetalle"::integer)) order by "idModulo")
      from permisos_perfil where "idPerfil" = perfil.id
    ), '[]') as permisos
    from perfil where id > 1 order by id
  `
  return [...rows]
}

it(`killed ${KILLS} times, leaves each profile as it was before a write or after it`, {
  timeout: 600_000,
}, async () => {
  console.log(`FAULTS_SEED=${SEED}`)
  const random = randomFrom(SEED)
  const names = Array.from({ length: KILLS }, (_, n) => `llavero-${n}`)
  const starting = names.splice(0, AHEAD).map(startNamed)
  const kept = { before: 0, after: 0 }

  for (let kill = 0; kill < KILLS; kill++) {
    const service = await starting.shift()
    if (!service) throw new Error('none was started')
    const [next] = names.splice(0, 1)
    if (next) starting.push(startNamed(next))

    let answered = () => {}
    const firstAnswer = new Promise<void>((resolve) => {
      answered = resolve
    })
    const writes = PERFILES.map(async (perfil) => {
      for (;;) {
        perfil.underWay = perfil.known + 1
        const { method, path, body } = perfil
        const answer = await service.call(method, path, body(perfil.underWay), token)
        if (answer.status === 0) return
        expect(answer).toMatchObject({ status: 200, body: { success: true } })
        perfil.known = perfil.underWay
        answered()
      }
    })
    const name = `llavero-${kill}`
    await Promise.race([firstAnswer, Promise.all(writes)])
    await sleep(random() * LATEST)
    // Every other one when the database is at it, where most could go wrong.
    if (kill % 2 === 0) await seeWriting(name)
    service.child.kill('SIGKILL')
    await Promise.all(writes)
    // What the database was sent it may still be doing.
    while ((await sql`select from pg_stat_activity where application_name = ${name}`).length > 0) {
      await sleep(5)
    }

    const estados = await readEstados()
    for (const [i, perfil] of PERFILES.entries()) {
      const { estado, known, underWay } = perfil
      expect([estado(known), estado(underWay)]).toContainEqual(estados[i])
      const isAfter = isDeepStrictEqual(estados[i], estado(underWay))
      kept[isAfter ? 'after' : 'before'] += 1
      if (isAfter) perfil.known = underWay
    }
  }
  console.log('writes without an answer:', kept)
  // The kills were neither all too early nor all too late.
  expect(Math.min(kept.before, kept.after)).toBeGreaterThan(0)
})
