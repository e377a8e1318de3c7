import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ADMIN, testApp } from './app.js'

/** How often each race is run; 400 find a gap of a millisecond. */
const ROUNDS = Number(process.env.RACE_ROUNDS ?? 40)
const FLAGS = ['bitAgregar', 'bitEditar', 'bitConsulta', 'bitEliminar', 'bitDetalle']
/** Any number that nobody else locks. */
const PAUSE = 11

const replicas = [await testApp()]
const [{ config, call, login }] = replicas as [(typeof replicas)[0]]
replicas.push(await testApp({ DATABASE_URL: config.DATABASE_URL.url }))
const sql = postgres(config.DATABASE_URL.url, { onnotice: () => {} })
afterAll(() => sql.end())

let world: Awaited<ReturnType<typeof makeWorld>>

/**
 * The attacker's profile may do everything with the four system modules and is no administrator;
 * `debil` holds nothing, `fuerte` what the attacker's does not.
 */
async function makeWorld() {
  const insertPerfil = (nombre: string) =>
    idOf(sql`insert into perfil ("strNombrePerfil") values (${nombre}) returning id`)
  const [propio, debil, fuerte] = [
    await insertPerfil('propio'),
    await insertPerfil('debil'),
    await insertPerfil('fuerte'),
  ]
  await sql`insert into permisos_perfil ${sql(
    (await sql`select id from modulo order by id`).map(({ id }) => record(propio, id, FLAGS)),
  )}`
  const [ajeno, libre] = [await insertModulo('AJENO'), await insertModulo('LIBRE')]
  await sql`insert into permisos_perfil ${sql(record(fuerte, ajeno, FLAGS))}`
  await insertUsuario('atacante', propio)
  const victima = await insertUsuario('complice', debil)
  const token = await login('atacante', ADMIN.strPwd)
  return { debil, fuerte, ajeno, libre, victima, token }
}

const idOf = async (query: Promise<{ id: number }[]>) => (await query)[0]?.id as number

const insertModulo = (nombre: string) =>
  idOf(sql`insert into modulo ("strNombreModulo") values (${nombre}) returning id`)

const record = (idPerfil: number, idModulo: number, flags: string[]) => ({
  idPerfil,
  idModulo,
  ...Object.fromEntries(FLAGS.map((flag) => [flag, flags.includes(flag)])),
})

/** With the administrator's password. */
const insertUsuario = (nombre: string, idPerfil: number) =>
  idOf(sql`
    insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
    select ${nombre}, ${idPerfil}, "strPwd", ${`${nombre}@x.es`}
    from usuario where "strNombreUsuario" = ${ADMIN.strNombreUsuario} returning id
  `)

let turn = 0
const usuario = (idPerfil: number) => {
  turn += 1
  const strNombreUsuario = `tomado${turn}`
  return { strNombreUsuario, idPerfil, strCorreo: `${turn}@x.es`, idEstadoUsuario: true }
}
const createAdministrador = async () =>
  (await call('POST', '/api/perfil', { strNombrePerfil: 'nuevo', bitAdministrador: true })).body
    .data.id as number
const createRecord = async () => {
  await sql`delete from permisos_perfil where "idPerfil" = ${world.fuerte}`
  const body = record(world.fuerte, world.ajeno, FLAGS)
  return (await call('POST', '/api/permisos', body)).body.data.id as number
}
const createUsuario = () => insertUsuario(`nuevo${++turn}`, world.fuerte)
const createModulo = () =>
  sql.begin(async (tx) => {
    const name = `NUEVO ${++turn}`
    const [row] = await tx`insert into modulo ("strNombreModulo") values (${name}) returning id`
    await tx`insert into permisos_perfil ${tx(record(world.fuerte, row?.id, FLAGS))}`
    return row?.id as number
  })

interface Attack {
  name: string
  table: 'perfil' | 'permisos_perfil' | 'usuario' | 'modulo'
  /** What an administrator makes meanwhile; gives its id. */
  create: () => Promise<number>
  /** What the attacker sends about the id that comes next. */
  request: (id: number) => ['POST' | 'PUT' | 'DELETE', string, object | undefined]
  /** What the attacker is told of an id that nobody has. */
  unknown: object
}

const FAILED = (message: string, statusCode = 500) => ({ statusCode, message })
const DELETED = { success: true, message: 'Eliminado correctamente' }
const NO_PERFIL = FAILED('El perfil indicado no existe')

const ATTACKS: Attack[] = [
  {
    name: 'moves a user into a new profile',
    table: 'perfil',
    create: createAdministrador,
    request: (id) => ['PUT', `/api/usuario/${world.victima}`, usuario(id)],
    unknown: NO_PERFIL,
  },
  {
    name: 'creates a user in a new profile',
    table: 'perfil',
    create: createAdministrador,
    request: (id) => ['POST', '/api/usuario', { ...usuario(id), strPwd: 'x' }],
    unknown: NO_PERFIL,
  },
  {
    name: 'empties a new profile',
    table: 'perfil',
    create: createAdministrador,
    request: (idPerfil) => ['POST', '/api/permisos/guardar-matriz', { idPerfil }],
    unknown: { success: true, message: 'Matriz actualizada correctamente' },
  },
  {
    name: 'replaces the matrix of a new profile',
    table: 'perfil',
    create: createAdministrador,
    request: (idPerfil) => [
      'POST',
      '/api/permisos/guardar-matriz',
      { idPerfil, permisos: [{ idModulo: world.libre }] },
    ],
    unknown: FAILED('Error al guardar en base de datos'),
  },
  {
    name: 'deletes a new profile',
    table: 'perfil',
    create: createAdministrador,
    request: (id) => ['DELETE', `/api/perfil/${id}`, undefined],
    unknown: DELETED,
  },
  {
    name: 'deletes a new record of a stronger profile',
    table: 'permisos_perfil',
    create: createRecord,
    request: (id) => ['DELETE', `/api/permisos/${id}`, undefined],
    unknown: DELETED,
  },
  {
    name: 'moves a new record out of a stronger profile',
    table: 'permisos_perfil',
    create: createRecord,
    request: (id) => ['PUT', `/api/permisos/${id}`, record(world.debil, world.libre, [])],
    unknown: FAILED('Permiso no encontrado', 404),
  },
  {
    name: 'takes over a new user of a stronger profile',
    table: 'usuario',
    create: createUsuario,
    request: (id) => ['PUT', `/api/usuario/${id}`, usuario(world.debil)],
    unknown: { success: true },
  },
  {
    name: 'deletes a new user of a stronger profile',
    table: 'usuario',
    create: createUsuario,
    request: (id) => ['DELETE', `/api/usuario/${id}`, undefined],
    unknown: DELETED,
  },
  {
    name: 'deletes a new module of a stronger profile',
    table: 'modulo',
    create: createModulo,
    request: (id) => ['DELETE', `/api/modulo/${id}`, undefined],
    unknown: DELETED,
  },
  {
    name: 'renames a new module of a stronger profile',
    table: 'modulo',
    create: createModulo,
    request: (id) => ['PUT', `/api/modulo/${id}`, { strNombreModulo: `ROBADO ${++turn}` }],
    unknown: { success: true },
  },
]

/** The id that the next row of a table gets. */
async function nextId(table: Attack['table']) {
  const sequence = sql(`${table}_id_seq`)
  const [row] = await sql`select last_value + is_called::integer as id from ${sequence}`
  return Number(row?.id)
}

/** What an attack could have changed of what is made. */
const OUTLINES = {
  perfil: sql`select "bitAdministrador", "numPermisos",
    (select count(*) from usuario where "idPerfil" = perfil.id) as usuarios from perfil`,
  permisos_perfil: sql`select "idPerfil", "idModulo", "bitEditar" from permisos_perfil`,
  usuario: sql`select "idPerfil", "strNombreUsuario" like 'nuevo%' as nombrado from usuario`,
  modulo: sql`select "strNombreModulo" like 'NUEVO%' as nombrado,
    (select count(*) from permisos_perfil where "idModulo" = modulo.id) as registros from modulo`,
}
const outline = async (table: Attack['table'], id: number) =>
  (await sql`${OUTLINES[table]} where id = ${id}`)[0]

/** On connections of their own. */
const holder = postgres(config.DATABASE_URL.url, { max: 2 })

beforeAll(async () => {
  world = await makeWorld()
  return () => holder.end()
})

describe('what comes to be while a write is decided is unknown to it', () => {
  beforeAll(async () => {
    // The attacker's write stops after the decision for as long as a test holds the lock.
    await holder.unsafe(`
      alter function refuse_beyond(integer[], integer) rename to refuse_beyond_at_once;
      create function refuse_beyond(p_perfiles integer[], p_limite integer) returns void
      language plpgsql as $$
      begin
        perform refuse_beyond_at_once(p_perfiles, p_limite);
        perform pg_advisory_xact_lock_shared(${PAUSE}) where p_limite is not null;
      end
      $$;
    `)
    return () =>
      holder.unsafe(`
        drop function refuse_beyond(integer[], integer);
        alter function refuse_beyond_at_once(integer[], integer) rename to refuse_beyond;
      `)
  })

  it.each(ATTACKS)('$name', async ({ table, create, request, unknown }) => {
    const id = await nextId(table)
    let answer: Promise<{ body: unknown }> | undefined
    let created: unknown
    await holder.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(${PAUSE})`
      let isAnswered = false
      answer = call(...request(id), { token: world.token }).finally(() => {
        isAnswered = true
      })
      while (!isAnswered && !(await isWaitedFor(PAUSE))) await sleep(5)
      expect(await create()).toBe(id)
      created = await outline(table, id)
    })
    expect((await answer)?.body).toEqual(unknown)
    expect(await outline(table, id)).toEqual(created)
  })
})

const isWaitedFor = async (lock: number) =>
  (
    await holder`select from pg_locks where locktype = 'advisory' and objid = ${lock}
      and not granted`
  ).length > 0

describe(`what comes to be beside an attack on its id, ${ROUNDS} times`, () => {
  it.each(ATTACKS)('$name', { timeout: 300_000 }, async ({ table, create, request }) => {
    const untouched = await outline(table, await create())
    let touched = 0
    for (let round = 0; round < ROUNDS; round++) {
      const id = await nextId(table)
      let isCreated = false
      const attacks = replicas.map(async (replica) => {
        do await replica.call(...request(id), { token: world.token })
        while (!isCreated)
      })
      await sleep(Math.random() * 4)
      expect(await create()).toBe(id)
      isCreated = true
      await Promise.all(attacks)
      if (!isDeepStrictEqual(await outline(table, id), untouched)) touched += 1
    }
    expect(touched).toBe(0)
  })
})

it('of two logouts at the same time one ends the session, and the other finds it ended', async () => {
  const id = await insertUsuario('saliente', world.debil)
  const token = await login('saliente', ADMIN.strPwd)
  let answers: Promise<{ status: number }[]> | undefined
  await holder.begin(async (tx) => {
    await tx`select from usuario where id = ${id} for update`
    const logout = () => call('POST', '/api/auth/logout', undefined, { token })
    answers = Promise.all([logout(), logout()])
    while ((await countWaiting()) < 2) await sleep(5)
  })
  const statuses = (await answers)?.map(({ status }) => status)
  expect(statuses?.toSorted()).toEqual([200, 401])
})

async function countWaiting() {
  const rows = await holder`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
  `
  return rows.length
}
