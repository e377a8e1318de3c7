import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type Answer,
  type AnswerWithHeaders,
  DELETED,
  MATRIX_REPLACED,
  statusCodeAnswer,
  withoutHeaders,
} from './answers.js'
import { ADMIN, testApp } from './app.js'
import { FLAGS, type Flag, type Method } from './endpoints.js'
import { countWaiting } from './hold.js'

// A write first checks whether the caller may change a row, and then changes it. These tests create
// the row between the check and the change: the write must behave as if the row did not exist. The
// attacker guesses the id of the next row and sends a write with this id. Meanwhile an
// administrator creates the row, which the attacker may not change: a profile with more
// permissions, or a row of such a profile.
//
// The first group tests each attack once. It replaces the SQL functions that make the checks. Each
// replacement makes the same check and then waits until the test releases an advisory lock.
// Meanwhile the row is created. The attacker must get the answer for an unknown id, and the row
// must not change.
//
// The second group stops the attacker's write in the same way. Meanwhile somebody else writes what
// the check has read. That must wait until the attacker's write has ended.
//
// The third group tests each attack RACE_ROUNDS times with the original functions and two
// replicas. The attacker repeats the request, and the row is created at a random moment.

/** How many times the third group runs each attack. With 400 it finds a gap of a millisecond. */
const ROUNDS = Number(process.env.RACE_ROUNDS ?? 4)
/** The SQL functions that check a write, and the keys of the advisory locks at which they stop. */
const CHECKS = { begin_write: 11, refuse_beyond: 12 }

const first = await testApp()
const { config, call, login } = first
const second = await testApp({ DATABASE_URL: config.DATABASE_URL.url })
const replicas = [first, second]
const sql = postgres(config.DATABASE_URL.url, { onnotice: () => {} })
afterAll(() => sql.end())

let world: Awaited<ReturnType<typeof makeWorld>>

/**
 * Inserts the attacker, whose profile has every flag on the four system modules but is not an
 * administrator; the profiles `previo`, which has the lowest id, and `debil`, which have none; and
 * `fuerte`, which has every flag on AJENO.
 */
async function makeWorld() {
  const insertPerfil = (nombre: string) =>
    idOf(sql`insert into perfil ("strNombrePerfil") values (${nombre}) returning id`)
  const previo = await insertPerfil('previo')
  const propio = await insertPerfil('propio')
  const debil = await insertPerfil('debil')
  const fuerte = await insertPerfil('fuerte')
  await sql`insert into permisos_perfil ${sql(
    (await sql`select id from modulo order by id`).map(({ id }) => record(propio, id, FLAGS)),
  )}`
  const ajeno = await insertModulo('AJENO')
  const libre = await insertModulo('LIBRE')
  await sql`insert into permisos_perfil ${sql(record(fuerte, ajeno, FLAGS))}`
  const atacante = await insertUsuario('atacante', propio)
  const complice = await insertUsuario('complice', debil)
  const token = await login('atacante', ADMIN.strPwd)
  return { previo, propio, debil, fuerte, ajeno, libre, atacante, complice, token }
}

const idOf = async (query: Promise<{ id: number }[]>) => (await query)[0]?.id as number

const insertModulo = (nombre: string) =>
  idOf(sql`insert into modulo ("strNombreModulo") values (${nombre}) returning id`)

const record = (idPerfil: number, idModulo: number, flags: Flag[]) => ({
  idPerfil,
  idModulo,
  ...Object.fromEntries(FLAGS.map((flag) => [flag, flags.includes(flag)])),
})

/** Inserts a user with the administrator's password and returns the id. */
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

type Request = [Method, string, object | undefined]

interface Attack {
  name: string
  table: 'perfil' | 'permisos_perfil' | 'usuario' | 'modulo'
  /** Creates the row that the attacker may not touch; resolves to its id. */
  create: () => Promise<number>
  /** Returns the attacker's request about the id that the row will get. */
  request: (id: number) => Request
  /** The answer to that request when no row has the id. */
  unknown: Answer
  /** The check after which the test stops the attacker's write. The default is `refuse_beyond`. */
  lastCheck?: keyof typeof CHECKS
}

const NO_PERFIL = statusCodeAnswer(500, 'El perfil indicado no existe')
const NOT_CHANGED: Answer = { status: 200, body: { success: true } }

const ATTACKS: Attack[] = [
  {
    name: 'moves a user into a new profile',
    table: 'perfil',
    create: createAdministrador,
    request: (id) => ['PUT', `/api/usuario/${world.complice}`, usuario(id)],
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
    unknown: MATRIX_REPLACED,
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
    unknown: statusCodeAnswer(500, 'Error al guardar en base de datos'),
  },
  {
    name: 'deletes a new profile',
    table: 'perfil',
    create: createAdministrador,
    request: (id) => ['DELETE', `/api/perfil/${id}`, undefined],
    unknown: DELETED,
  },
  {
    name: 'renames a new profile',
    table: 'perfil',
    create: createAdministrador,
    request: (id) => [
      'PUT',
      `/api/perfil/${id}`,
      { strNombrePerfil: 'robado', bitAdministrador: true },
    ],
    unknown: statusCodeAnswer(404, 'Perfil no encontrado'),
    lastCheck: 'begin_write',
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
    unknown: statusCodeAnswer(404, 'Permiso no encontrado'),
  },
  {
    name: 'takes over a new user of a stronger profile',
    table: 'usuario',
    create: createUsuario,
    request: (id) => ['PUT', `/api/usuario/${id}`, usuario(world.debil)],
    unknown: NOT_CHANGED,
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
    lastCheck: 'begin_write',
  },
  {
    name: 'renames a new module of a stronger profile',
    table: 'modulo',
    create: createModulo,
    request: (id) => ['PUT', `/api/modulo/${id}`, { strNombreModulo: `ROBADO ${++turn}` }],
    unknown: NOT_CHANGED,
    lastCheck: 'begin_write',
  },
]

/** The attacker's write during most of CHANGES. */
const writeRecord = (): Request => [
  'POST',
  '/api/permisos/guardar-matriz',
  { idPerfil: world.debil, permisos: [{ idModulo: 1, bitEditar: true }] },
]

/** Sends an administrator's request, which must be answered with 200. */
const succeed = async (...request: Request) => expect((await call(...request)).status).toBe(200)

/** Writes of what decides whether the attacker may write. They leave the attacker's rights alone. */
const CHANGES: { name: string; write?: () => Request; change: () => Promise<void> }[] = [
  {
    name: 'the user who writes',
    change: async () => {
      await sql`update usuario set "idPerfil" = "idPerfil" where id = ${world.atacante}`
    },
  },
  {
    name: 'the permissions of the user who writes',
    change: () => {
      const permisos = [1, 2, 3, 4].map((idModulo) => record(world.propio, idModulo, FLAGS))
      return succeed('POST', '/api/permisos/guardar-matriz', { idPerfil: world.propio, permisos })
    },
  },
  {
    name: 'the permissions of the user who writes, with psql',
    change: async () => {
      await sql`
        update permisos_perfil set "bitEditar" = "bitEditar" where "idPerfil" = ${world.propio}
      `
    },
  },
  {
    name: 'the profile that is written',
    change: () => succeed('POST', '/api/permisos/guardar-matriz', { idPerfil: world.debil }),
  },
  {
    name: 'the profile that is written, with psql',
    change: async () => {
      await sql`update perfil set "bitAdministrador" = false where id = ${world.debil}`
    },
  },
  {
    name: 'the profile that is written and has a lower id than the own one, with psql',
    write: () => ['POST', '/api/permisos/guardar-matriz', { idPerfil: world.previo }],
    change: async () => {
      await sql`update perfil set "bitAdministrador" = false where id = ${world.previo}`
    },
  },
  {
    name: 'the modules of the records that are written',
    change: () => succeed('PUT', `/api/modulo/${world.libre}`, { strNombreModulo: 'LIBRE' }),
  },
  {
    name: 'the records for a module that is renamed',
    write: () => ['PUT', `/api/modulo/${world.libre}`, { strNombreModulo: 'LIBRE' }],
    change: () => succeed('POST', '/api/permisos', record(world.fuerte, world.libre, [])),
  },
]

/** Returns the id that the next row of a table will get. */
async function nextId(table: Attack['table']) {
  const sequence = sql(`${table}_id_seq`)
  const [row] = await sql`select last_value + is_called::integer as id from ${sequence}`
  return Number(row?.id)
}

/** For each table, the SQL expressions that an attack on one of its rows would change. */
const ATTACKED_VALUES = {
  perfil: `
    "strNombrePerfil", "bitAdministrador", "numPermisos",
    (select count(*) from usuario where "idPerfil" = perfil.id) as usuarios
  `,
  permisos_perfil: '"idPerfil", "idModulo", "bitEditar"',
  usuario: `"idPerfil", "strNombreUsuario" like 'nuevo%' as nombrado`,
  modulo: `
    "strNombreModulo" like 'NUEVO%' as nombrado,
    (select count(*) from permisos_perfil where "idModulo" = modulo.id) as registros
  `,
}

/** Returns what an attack on the row would have changed; undefined when the row does not exist. */
async function readAttacked(table: Attack['table'], id: number) {
  const [row] = await sql`
    select ${sql.unsafe(ATTACKED_VALUES[table])} from ${sql(table)} where id = ${id}
  `
  return row
}

/**
 * Connections that hold the locks and look for sessions that wait for them. They are separate from
 * `sql`, so that they never wait for the other queries of the tests.
 */
const holder = postgres(config.DATABASE_URL.url, { max: 2 })

beforeAll(async () => {
  world = await makeWorld()
  return () => holder.end()
})

describe('while a write is between its check and its change', () => {
  beforeAll(async () => {
    // Only the attacker's write stops at the lock. The administrator's has no limit (null) and
    // passes.
    await holder.unsafe(`
      alter function begin_write(integer[], jsonb) rename to begin_write_at_once;
      create function begin_write(
        p_perfiles integer[], p_actor jsonb, out perfiles integer[], out limite integer
      )
      language plpgsql as $$
      begin
        select checked.perfiles, checked.limite into perfiles, limite
        from begin_write_at_once(p_perfiles, p_actor) as checked;
        perform pg_advisory_xact_lock_shared(${CHECKS.begin_write}) where limite is not null;
      end
      $$;
      alter function refuse_beyond(integer[], integer) rename to refuse_beyond_at_once;
      create function refuse_beyond(p_perfiles integer[], p_limite integer) returns void
      language plpgsql as $$
      begin
        perform refuse_beyond_at_once(p_perfiles, p_limite);
        perform pg_advisory_xact_lock_shared(${CHECKS.refuse_beyond}) where p_limite is not null;
      end
      $$;
    `)
    return () =>
      holder.unsafe(`
        drop function begin_write(integer[], jsonb);
        alter function begin_write_at_once(integer[], jsonb) rename to begin_write;
        drop function refuse_beyond(integer[], integer);
        alter function refuse_beyond_at_once(integer[], integer) rename to refuse_beyond;
      `)
  })

  /** Sends the attacker's request, and calls `meanwhile` while the write waits after `check`. */
  async function stopAfter(
    check: keyof typeof CHECKS,
    request: Request,
    meanwhile: () => Promise<unknown>,
  ) {
    const key = CHECKS[check]
    let answer: Promise<AnswerWithHeaders> | undefined
    await holder.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(${key})`
      answer = call(...request, { token: world.token })
      await expect.poll(() => isWaitedFor(key), { interval: 5 }).toBe(true)
      await meanwhile()
    })
    return answer as Promise<AnswerWithHeaders>
  }

  it.each(ATTACKS)('a row that is created does not exist for it: $name', async (attack) => {
    const { table, create, request, unknown, lastCheck = 'refuse_beyond' } = attack
    const id = await nextId(table)
    let created: unknown
    const answer = await stopAfter(lastCheck, request(id), async () => {
      expect(await create()).toBe(id)
      created = await readAttacked(table, id)
    })
    expect(withoutHeaders(answer)).toEqual(unknown)
    expect(await readAttacked(table, id)).toEqual(created)
  })

  it.each(CHANGES)('nobody changes $name', async ({ write = writeRecord, change }) => {
    let changed: Promise<void> | undefined
    const { status } = await stopAfter('begin_write', write(), async () => {
      changed = change()
      // Both writes wait: the attacker's for the test, and the change for the attacker's.
      await expect.poll(() => countWaiting(sql)).toBe(2)
    })
    await changed
    expect(status).toBe(200)
  })
})

/** Returns whether a session of this database waits for the advisory lock with this key. */
async function isWaitedFor(key: number) {
  const rows = await holder`
    select from pg_locks
    where locktype = 'advisory'
      and database = (select oid from pg_database where datname = current_database())
      and (classid, objid, objsubid) = (0, ${key}, 1)
      and not granted
  `
  return rows.length > 0
}

describe(`each of ${ROUNDS} rows that are created while their id is attacked stays untouched`, () => {
  it.each(ATTACKS)('$name', { timeout: 300_000 }, async ({ table, create, request }) => {
    const untouched = await readAttacked(table, await create())
    let touched = 0
    for (let round = 0; round < ROUNDS; round++) {
      const id = await nextId(table)
      let isCreated = false
      const attacks = replicas.map(async (replica) => {
        do {
          await replica.call(...request(id), { token: world.token })
        } while (!isCreated)
      })
      await sleep(Math.random() * 4)
      expect(await create()).toBe(id)
      isCreated = true
      await Promise.all(attacks)
      if (!isDeepStrictEqual(await readAttacked(table, id), untouched)) touched += 1
    }
    expect(touched).toBe(0)
  })
})

it('answers 200 to one of two simultaneous logouts, and 401 to the other', async () => {
  const id = await insertUsuario('saliente', world.debil)
  const token = await login('saliente', ADMIN.strPwd)
  let answers: Promise<{ status: number }[]> | undefined
  await holder.begin(async (tx) => {
    await tx`select from usuario where id = ${id} for update`
    const logout = () => call('POST', '/api/auth/logout', undefined, { token })
    answers = Promise.all([logout(), logout()])
    while ((await countWaiting(holder)) < 2) await sleep(5)
  })
  const statuses = (await answers)?.map(({ status }) => status)
  expect(statuses?.toSorted()).toEqual([200, 401])
})

type Begin = (query: postgres.Sql | postgres.TransactionSql) => Promise<unknown>

const beginWrite = (actor: object): Begin => {
  return (query) => query`select begin_write('{}', ${sql.json(actor as never)})`
}

/**
 * Makes a change while the transaction of `begin` is in progress, and begins another one while the
 * change waits. Returns the status of the change and the SQLSTATE of the second transaction.
 */
async function changeBetween(begin: Begin, change: () => Promise<AnswerWithHeaders>) {
  let changed: Promise<AnswerWithHeaders> | undefined
  let second: Promise<string> | undefined
  await holder.begin(async (tx) => {
    await begin(tx)
    changed = change()
    await expect.poll(() => countWaiting(sql)).toBe(1)
    second = begin(sql).then(
      () => 'none',
      ({ code }) => code,
    )
    await expect.poll(() => countWaiting(sql)).toBe(2)
  })
  return { status: (await changed)?.status, code: await second }
}

it('ends a session although its user always has a write in progress', async () => {
  const id = await insertUsuario('insistente', world.debil)
  const token = await login('insistente', ADMIN.strPwd)
  const logout = () => call('POST', '/api/auth/logout', undefined, { token })
  const write = beginWrite({ id, ver: 0, enforced: false })
  expect(await changeBetween(write, logout)).toEqual({ status: 200, code: 'LL401' })
})

it('deletes a user although a login is always in progress', async () => {
  const id = await insertUsuario('reincidente', world.debil)
  const login: Begin = (query) => query`
    select begin_sesion(id, "strPwd", '{}') from usuario where id = ${id}
  `
  const remove = () => call('DELETE', `/api/usuario/${id}`)
  expect(await changeBetween(login, remove)).toEqual({ status: 200, code: 'none' })
})

it('begins and records no session if the password is no longer the one that was compared', async () => {
  const id = await insertUsuario('renovado', world.debil)
  const [row] = await sql`select begin_sesion(${id}, 'el hash anterior', '{}') as answer`
  expect(row?.answer).toEqual({ ver: null })
  const logins = await sql`select from auditoria where accion = 'login' and "idEntidad" = ${id}`
  expect(logins).toHaveLength(0)
})

describe('although a user with the profile always has a write in progress', () => {
  const permission = { modulo: 'USUARIO', accion: 'bitEditar' }

  async function changeWhileBusy(
    nombre: string,
    change: (idPerfil: number) => Promise<AnswerWithHeaders>,
  ) {
    const idPerfil = await idOf(
      sql`insert into perfil ("strNombrePerfil") values (${nombre}) returning id`,
    )
    await sql`
      insert into permisos_perfil ("idPerfil", "idModulo", "bitEditar")
      select ${idPerfil}, id, true from modulo where "strNombreModulo" = ${permission.modulo}
    `
    const id = await insertUsuario(nombre, idPerfil)
    const actor = { id, ver: 0, ...permission, enforced: true }
    return changeBetween(beginWrite(actor), () => change(idPerfil))
  }

  it('takes permissions from the profile', async () => {
    const revoke = (idPerfil: number) =>
      call('POST', '/api/permisos/guardar-matriz', { idPerfil, permisos: [] })
    expect(await changeWhileBusy('insistentes', revoke)).toEqual({ status: 200, code: 'LL403' })
  })

  it('takes permissions from the profile, for a caller whose profile has the higher id', async () => {
    const revoke = async (idPerfil: number) => {
      await insertUsuario('superior', await createAdministrador())
      const token = await login('superior', ADMIN.strPwd)
      return call('POST', '/api/permisos/guardar-matriz', { idPerfil, permisos: [] }, { token })
    }
    expect(await changeWhileBusy('pertinaces', revoke)).toEqual({ status: 200, code: 'LL403' })
  })

  it('adds a permission record to the profile', async () => {
    const add = (idPerfil: number) =>
      call('POST', '/api/permisos', record(idPerfil, world.ajeno, FLAGS))
    expect(await changeWhileBusy('tenaces', add)).toEqual({ status: 200, code: 'none' })
  })
})

it('deletes a permission record that another write moves to another profile meanwhile', async () => {
  const { debil, fuerte, ajeno } = world
  await sql`delete from permisos_perfil where "idPerfil" = ${fuerte}`
  const id = await idOf(sql`
    insert into permisos_perfil ${sql(record(debil, ajeno, []))} returning id
  `)
  let answers: Promise<Answer[]> | undefined
  await holder.begin(async (tx) => {
    await tx`select from perfil where id = ${debil} for update`
    const move = call('PUT', `/api/permisos/${id}`, record(fuerte, ajeno, []))
    await expect.poll(() => countWaiting(sql)).toBe(1)
    const remove = call('DELETE', `/api/permisos/${id}`)
    await expect.poll(() => countWaiting(sql)).toBe(2)
    answers = Promise.all([move, remove])
  })
  expect(await answers).toMatchObject([{ status: 200 }, { status: 200 }])
  expect(await sql`select from permisos_perfil where id = ${id}`).toEqual([])
})

it('moves no permission record to a profile that is added meanwhile, for an administrator either', async () => {
  const { debil, ajeno } = world
  const id = await idOf(sql`
    insert into permisos_perfil ${sql(record(debil, ajeno, []))} returning id
  `)
  const added = await nextId('perfil')
  let isAnswered = false
  let answer: Promise<Answer> | undefined
  await holder.begin(async (tx) => {
    await tx`select from permisos_perfil where id = ${id} for update`
    answer = call('PUT', `/api/permisos/${id}`, record(added, ajeno, [])).finally(() => {
      isAnswered = true
    })
    await expect.poll(async () => isAnswered || (await countWaiting(sql)) === 1).toBe(true)
    expect(await createAdministrador()).toBe(added)
  })
  expect(await answer).toMatchObject({ status: 400 })
})

it('does not deadlock when two callers replace the matrix of each other’s profile', async () => {
  const modulos = await sql`select id from modulo order by id`
  const [una, otra] = await Promise.all(
    ['una', 'otra'].map(async (nombre) => {
      const id = await idOf(sql`
        insert into perfil ("strNombrePerfil") values (${nombre}) returning id
      `)
      await sql`insert into permisos_perfil ${sql(modulos.map((modulo) => record(id, modulo.id, FLAGS)))}`
      await insertUsuario(nombre, id)
      return { id, token: await login(nombre, ADMIN.strPwd) }
    }),
  )
  const [lower, higher] = [una, otra].toSorted((a, b) => Number(a?.id) - Number(b?.id))
  if (!lower || !higher) throw new Error('there are two profiles')
  const clear = ({ id }: typeof lower, { token }: typeof lower) =>
    call('POST', '/api/permisos/guardar-matriz', { idPerfil: id, permisos: [] }, { token })

  let answers: Promise<Answer[]> | undefined
  await holder.begin(async (tx) => {
    await tx`select from perfil where id = ${lower.id} for update`
    const first = clear(lower, higher)
    await expect.poll(() => countWaiting(sql)).toBe(1)
    const second = clear(higher, lower)
    await expect.poll(() => countWaiting(sql)).toBe(2)
    answers = Promise.all([first, second])
  })
  // The second caller has no permission any more.
  expect(await answers).toMatchObject([{ status: 200 }, { status: 403 }])
})
