import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { beforeAll, expect, it } from 'vitest'
import { type Answer, READY } from '../answers.js'
import { connectTo } from '../connect.js'
import { endpoint, FLAGS } from '../endpoints.js'
import { hasEnded } from '../service.js'
import { type Database, startDatabase } from './database.js'
import { type Service, startService } from './service.js'

const KILLS = 100
/** How many services start in advance while another one is being killed. */
const AHEAD = 3
/**
 * The longest random delay before a kill, in milliseconds after the service's first answer. A write
 * takes about 20 ms. Every second kill then also waits for a write.
 */
const LATEST = 100
/**
 * The number of modules: so many that the database works longer on a write than the service does.
 */
const MODULOS = 200

/** A profile's administrator flag, and for each module its five flags as digits. */
type Estado = [administrador: boolean, permisos: Record<string, string>]

const permisosWith = (bits: string, isIn = (_idModulo: number) => true) =>
  Object.fromEntries(
    Array.from({ length: MODULOS }, (_, i) => i + 1)
      .filter(isIn)
      .map((idModulo) => [idModulo, bits]),
  )

/** A profile that the services write again and again. */
interface Perfil {
  write: (n: number) => [method: string, path: string, body: object]
  /** Returns the state after the `n`-th write, counted from 1. */
  estado: (n: number) => Estado
  /** The answer to a write that the database does not carry out. */
  unexpected: Answer
  /** Whether a write changes the profile itself, and not only its permissions. */
  changesPerfil: boolean
  /** The number of the last write that is known to be stored. */
  known: number
}

/** A profile whose matrix is replaced by one with other modules and flags each time. */
function replaced(idPerfil: number): Perfil {
  const matriz = (n: number) => {
    const bits = (1 + (n % 31)).toString(2).padStart(5, '0')
    return permisosWith(bits, (idModulo) => (idModulo + n) % 3 > 0)
  }
  return {
    write: (n) => {
      const permisos = Object.entries(matriz(n)).map(([idModulo, bits]) => ({
        idModulo,
        ...Object.fromEntries(FLAGS.map((flag, i) => [flag, bits[i] === '1'])),
      }))
      return ['POST', '/api/permisos/guardar-matriz', { idPerfil, permisos }]
    },
    estado: (n) => [false, n === 0 ? {} : matriz(n)],
    unexpected: endpoint('POST /api/permisos/guardar-matriz').unexpected,
    changesPerfil: false,
    known: 0,
  }
}

function toggled(id: number): Perfil {
  const isOn = (n: number) => n % 2 === 1
  return {
    write: (n) => {
      const body = { strNombrePerfil: 'Cambiante', bitAdministrador: isOn(n) }
      return ['PUT', `/api/perfil/${id}`, body]
    },
    estado: (n) => [isOn(n), isOn(n) ? permisosWith('11111') : {}],
    unexpected: endpoint('PUT /api/perfil/:id').unexpected,
    changesPerfil: true,
    known: 0,
  }
}

/** The profiles, whose ids are 2 to 7. */
const PERFILES = [replaced(2), replaced(3), replaced(4), replaced(5), toggled(6), toggled(7)]

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

/** Starts a service whose database connections have the application name `name`. */
const startNamed = (name: string) =>
  startService({ DATABASE_URL: `${database.url}?application_name=${name}` })

/** Waits until the database executes a write of that service. */
async function seeWriting(name: string) {
  const writing = () => sql`
    select from pg_stat_activity
    where application_name = ${name} and state = 'active' and query ~ 'replace_permisos|update_perfil'
  `
  while ((await writing()).length === 0) {
    // A pause here could be longer than the write.
  }
}

/** Reads the present state of each profile. */
async function readEstados(): Promise<Estado[]> {
  const rows = await sql<{ administrador: boolean; permisos: Estado[1] }[]>`
    select "bitAdministrador" as administrador, coalesce((
      select jsonb_object_agg("idModulo", concat("bitAgregar"::integer, "bitEditar"::integer,
        "bitConsulta"::integer, "bitEliminar"::integer, "bitDetalle"::integer))
      from permisos_perfil where "idPerfil" = perfil.id
    ), '{}') as permisos
    from perfil where id > 1 order by id
  `
  return rows.map(({ administrador, permisos }) => [administrador, permisos])
}

/**
 * Returns for each profile how many writes have a row in the audit about it, and about its
 * permissions.
 */
async function countAudited(): Promise<[perfil: number, permisos: number][]> {
  const rows = await sql<{ perfil: number; permisos: number }[]>`
    select count(*) filter (where entidad = 'perfil' and accion = 'update')::integer as perfil,
      count(*) filter (where entidad = 'permisos')::integer as permisos
    from auditoria
    where entidad in ('perfil', 'permisos') and "idEntidad" > 1
    group by "idEntidad"
    order by "idEntidad"
  `
  return rows.map(({ perfil, permisos }) => [perfil, permisos])
}

/**
 * Lets a service write each profile again and again, and calls `kill` after the first answer. Then
 * the next write of each profile must get the answer that `failureOf` returns, and is the last one.
 */
async function writeUntil(
  service: Service,
  kill: () => Promise<unknown>,
  failureOf: (perfil: Perfil) => Partial<Answer>,
) {
  let answered = () => {}
  const firstAnswer = new Promise<void>((resolve) => {
    answered = resolve
  })
  const writes = PERFILES.map(async (perfil) => {
    for (;;) {
      const [method, path, body] = perfil.write(perfil.known + 1)
      const answer = await service.call(method, path, body, token)
      if (answer.status !== 200) return expect(answer).toMatchObject(failureOf(perfil))
      expect(answer.body).toMatchObject({ success: true })
      perfil.known += 1
      answered()
    }
  })
  await Promise.race([firstAnswer, Promise.all(writes)])
  await sleep(Math.random() * LATEST)
  await kill()
  await Promise.all(writes)
}

/** How many writes without an answer are stored, and how many are not. */
const kept = { before: 0, after: 0 }

/**
 * Expects that each profile is as it was before or after the write that had no answer, and that the
 * audit has exactly the writes that are stored.
 */
async function expectStored() {
  const estados = await readEstados()
  for (const [i, perfil] of PERFILES.entries()) {
    const { estado, known } = perfil
    expect([estado(known), estado(known + 1)]).toContainEqual(estados[i])
    const isAfter = isDeepStrictEqual(estados[i], estado(known + 1))
    kept[isAfter ? 'after' : 'before'] += 1
    if (isAfter) perfil.known += 1
  }
  const audited = PERFILES.map(({ known, changesPerfil }) => [changesPerfil ? known : 0, known])
  expect(await countAudited()).toEqual(audited)
}

it(`a service that is killed ${KILLS} times leaves each profile as it was before or after a write, and the audit has the writes that are stored`, {
  timeout: 600_000,
}, async () => {
  const names = Array.from({ length: KILLS }, (_, n) => `llavero-${n}`)
  const starting = names.slice(0, AHEAD).map(startNamed)

  for (const [kill, name] of names.entries()) {
    const service = await starting.shift()
    if (!service) throw new Error('none was started')
    const next = names[kill + AHEAD]
    if (next) starting.push(startNamed(next))

    const killService = async () => {
      // Every second kill comes while the database executes a write, the most dangerous moment.
      if (kill % 2 === 0) await seeWriting(name)
      service.child.kill('SIGKILL')
    }
    await writeUntil(service, killService, () => ({ status: 0 }))
    // The database may still execute statements that the killed service has sent.
    const sessions = () => sql`select from pg_stat_activity where application_name = ${name}`
    while ((await sessions()).length > 0) await sleep(5)
    await expectStored()
  }
  console.log('writes without an answer:', kept)
  // Some kills came before the write was stored and some after it.
  expect(Math.min(kept.before, kept.after)).toBeGreaterThan(0)
})

it('a database that is killed three times has every write of a profile that was answered, and is used again within 5 s of its start', async () => {
  const service = await startService({ DATABASE_URL: database.url })
  for (let kill = 0; kill < 3; kill += 1) {
    await writeUntil(service, database.kill, ({ unexpected }) => unexpected)
    await database.start()
    await expect.poll(() => service.call('GET', '/health/ready')).toEqual(READY)
    await expectStored()
  }
  expect(hasEnded(service.child)).toBe(false)
})
