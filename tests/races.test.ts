import type postgres from 'postgres'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  type Answer,
  type AnswerWithHeaders,
  DELETED,
  FORBIDDEN,
  MATRIX_REPLACED,
  statusCodeAnswer,
  withoutHeaders,
} from './answers.js'
import { ADMIN, testApp } from './app.js'
import { FLAGS, type Flag, flags, type Method, usuario } from './endpoints.js'
import { countWaiting, type Step, sendDuring } from './hold.js'
import { insertModulo, insertPerfil, insertPermiso, insertUsuario } from './tables.js'

// A write first checks whether the caller may change a row, and then changes it. The first group of
// tests creates the row between the check and the change: the write must behave as if the row did
// not exist. The attacker guesses the id of the next row and sends a write with this id. Meanwhile
// an administrator creates the row, which the attacker may not change: a profile with more
// permissions, or a row of such a profile. The attacker must get the answer for an unknown id, and
// the row must not change.
//
// In the second group, somebody else writes meanwhile what the check has read. That must wait until
// the attacker's write has ended.
//
// Both groups replace the SQL functions that make the checks. Each replacement makes the same check
// and then waits until the test releases an advisory lock.

/** The SQL functions that check a write, and the keys of the advisory locks at which they stop. */
const CHECKS = { begin_write: 11, refuse_beyond: 12 }

const { app, call, login, sql } = await testApp()

let world: Awaited<ReturnType<typeof makeWorld>>

/**
 * Inserts the attacker, whose profile has every flag on the four system modules but is not an
 * administrator; the profiles `previo`, which has the lowest id, and `debil`, which have none; and
 * `fuerte`, which has every flag on AJENO.
 */
async function makeWorld() {
  const previo = await insertPerfil(sql, 'previo')
  const { id: atacante, idPerfil: propio, token } = await insertCaller('atacante')
  const debil = await insertPerfil(sql, 'debil')
  const fuerte = await insertPerfil(sql, 'fuerte')
  const ajeno = await insertModulo(sql, 'AJENO')
  const libre = await insertModulo(sql, 'LIBRE')
  await insertPermiso(sql, fuerte, ajeno, ...FLAGS)
  const complice = await insertUsuario(sql, 'complice', debil)
  return { previo, propio, debil, fuerte, ajeno, libre, atacante, complice, token }
}

const record = (idPerfil: number, idModulo: number, granted: Flag[]) => ({
  idPerfil,
  idModulo,
  ...flags(...granted),
})

/**
 * Inserts a profile that has every flag on the four system modules, and a user who has the profile.
 */
async function insertCaller(nombre: string) {
  const idPerfil = await insertPerfil(sql, nombre)
  const records = [1, 2, 3, 4].map((idModulo) => record(idPerfil, idModulo, FLAGS))
  await sql`insert into permisos_perfil ${sql(records)}`
  const id = await insertUsuario(sql, nombre, idPerfil)
  return { id, idPerfil, token: await login(nombre, ADMIN.strPwd) }
}

let turn = 0
const editado = (idPerfil: number) => usuario(`editado${++turn}`, { idPerfil, strPwd: undefined })
const createAdministrador = async () =>
  (await call('POST', '/api/perfil', { strNombrePerfil: 'nuevo', bitAdministrador: true })).body
    .data.id as number
const createRecord = async () => {
  await sql`delete from permisos_perfil where "idPerfil" = ${world.fuerte}`
  const body = record(world.fuerte, world.ajeno, FLAGS)
  return (await call('POST', '/api/permisos', body)).body.data.id as number
}
const createUsuario = () => insertUsuario(sql, `nuevo${++turn}`, world.fuerte)
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
    request: (id) => ['PUT', `/api/usuario/${world.complice}`, editado(id)],
    unknown: NO_PERFIL,
  },
  {
    name: 'creates a user in a new profile',
    table: 'perfil',
    create: createAdministrador,
    request: (id) => ['POST', '/api/usuario', usuario(`nuevo${++turn}`, { idPerfil: id })],
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
    name: 'adds a record to a new profile',
    table: 'perfil',
    create: createAdministrador,
    request: (id) => ['POST', '/api/permisos', record(id, world.libre, [])],
    unknown: statusCodeAnswer(400, 'El perfil o el módulo no existe'),
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
    request: (id) => ['PUT', `/api/usuario/${id}`, editado(world.debil)],
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

/**
 * Writes of what decides whether the attacker may write. They leave the attacker's rights alone.
 */
const CHANGES: {
  name: string
  write?: () => Request | Promise<Request>
  change: () => Promise<unknown>
}[] = [
  {
    name: 'the user who writes',
    change: async () =>
      sql`update usuario set "idPerfil" = "idPerfil" where id = ${world.atacante}`,
  },
  {
    name: 'the permissions of the user who writes',
    change: async () => sql`
      update permisos_perfil set "bitEditar" = "bitEditar" where "idPerfil" = ${world.propio}
    `,
  },
  {
    name: 'the profile that is written',
    change: async () => sql`update perfil set "bitAdministrador" = false where id = ${world.debil}`,
  },
  {
    name: 'the profile that is written and has a lower id than the own one',
    write: () => ['POST', '/api/permisos/guardar-matriz', { idPerfil: world.previo }],
    change: async () =>
      sql`update perfil set "bitAdministrador" = false where id = ${world.previo}`,
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
  {
    name: 'the records for a module that is deleted',
    write: async () => {
      // The profiles of administrators have records for LIBRE, so the attacker may not delete it.
      await sql`delete from permisos_perfil where "idModulo" = ${world.libre}`
      return ['DELETE', `/api/modulo/${world.libre}`, undefined]
    },
    // The module is unknown when the record is added.
    change: () => call('POST', '/api/permisos', record(world.fuerte, world.libre, [])),
  },
]

/** Returns the id that the next row of a table will get. */
async function nextId(table: Attack['table']) {
  const sequence = sql(`${table}_id_seq`)
  const [row] = await sql`select last_value + is_called::integer as id from ${sequence}`
  return Number(row?.id)
}

/** Returns a row, which an attack would change or delete; undefined when it does not exist. */
async function readRow(table: Attack['table'], id: number) {
  const [row] = await sql`select * from ${sql(table)} where id = ${id}`
  return row
}

beforeAll(async () => {
  world = await makeWorld()
})

describe('while a write is between its check and its change', () => {
  beforeAll(async () => {
    // Only the attacker's write stops at the lock. The administrator's has no limit (null) and
    // passes.
    await sql.unsafe(`
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
      sql.unsafe(`
        drop function begin_write(integer[], jsonb);
        alter function begin_write_at_once(integer[], jsonb) rename to begin_write;
        drop function refuse_beyond(integer[], integer);
        alter function refuse_beyond_at_once(integer[], integer) rename to refuse_beyond;
      `)
  })

  /** Sends the attacker's request, and calls `meanwhile` while the write waits after `check`. */
  const stopAfter = (
    check: keyof typeof CHECKS,
    request: Request,
    meanwhile: () => Promise<unknown>,
  ) =>
    sendDuring(
      sql,
      (tx) => tx`select pg_advisory_xact_lock(${CHECKS[check]})`,
      () => call(...request, { token: world.token }),
      { meanwhile },
    )

  it.each(ATTACKS)('a row that is created does not exist for it: $name', async (attack) => {
    const { table, create, request, unknown, lastCheck = 'refuse_beyond' } = attack
    const id = await nextId(table)
    let created: unknown
    const answer = await stopAfter(lastCheck, request(id), async () => {
      expect(await create()).toBe(id)
      created = await readRow(table, id)
    })
    expect(withoutHeaders(answer)).toEqual(unknown)
    expect(await readRow(table, id)).toEqual(created)
  })

  it.each(CHANGES)('nobody changes $name', async ({ write = writeRecord, change }) => {
    let changed: Promise<unknown> | undefined
    const { status } = await stopAfter('begin_write', await write(), async () => {
      changed = change()
      // Both writes wait: the attacker's for the test, and the change for the attacker's.
      await expect.poll(() => countWaiting(sql)).toBe(2)
    })
    await changed
    expect(status).toBe(200)
  })
})

/**
 * Sends the requests while it holds a lock. Sends each of them when all those before it wait.
 * Returns their answers.
 */
async function sendInOrder(lock: Begin, ...requests: (() => Promise<any>)[]) {
  const answers: Promise<any>[] = []
  await sql.begin(async (tx) => {
    await lock(tx)
    for (const request of requests) {
      answers.push(request())
      await expect.poll(() => countWaiting(sql)).toBe(answers.length)
    }
  })
  return Promise.all(answers)
}

type Begin = (query: postgres.Sql | postgres.TransactionSql) => Promise<unknown>

const lockPerfil =
  (id: number): Begin =>
  (query) =>
    query`select from perfil where id = ${id} for update`

it('answers 200 to one of two simultaneous logouts, and 401 to the other', async () => {
  const id = await insertUsuario(sql, 'saliente', world.debil)
  const token = await login('saliente', ADMIN.strPwd)
  const lock: Begin = (query) => query`select from usuario where id = ${id} for update`
  const logout = () => call('POST', '/api/auth/logout', undefined, { token })
  const answers = await sendInOrder(lock, logout, logout)
  expect(answers).toMatchObject([{ status: 200 }, { status: 401 }])
})

it('renames no module that meanwhile gets a permission record', async () => {
  const { debil, token } = world
  const id = await insertModulo(sql, 'SIN REGISTROS')
  const add = () => call('POST', '/api/permisos', record(debil, id, []))
  const rename = () => call('PUT', `/api/modulo/${id}`, { strNombreModulo: 'OTRO' }, { token })
  const answers = await sendInOrder(lockPerfil(debil), add, rename)
  expect(answers).toMatchObject([{ status: 200 }, FORBIDDEN])
})

// A write with `psql` takes no advisory lock.
describe.each([
  ['renames', 'PUT', { strNombreModulo: 'ROBADO' }],
  ['deletes', 'DELETE', undefined],
] as const)('%s no module that a write with `psql` changes meanwhile', (_, method, body) => {
  const send = (id: number, token?: string) => call(method, `/api/modulo/${id}`, body, { token })

  it('by adding a record of a stronger profile', async () => {
    const id = await insertModulo(sql, `CODICIADO ${method}`)
    const add: Step = (tx) => tx`insert into permisos_perfil ${tx(record(world.fuerte, id, FLAGS))}`
    expect(await sendDuring(sql, add, () => send(id, world.token))).toMatchObject(FORBIDDEN)
  })

  it('by moving its record to a stronger profile', async () => {
    const id = await insertModulo(sql, `MOVIDO ${method}`)
    const weak = await insertPerfil(sql, `de paso ${method}`)
    await insertPermiso(sql, weak, id)
    const move: Step = async (tx) => {
      await tx`update permisos_perfil set "idPerfil" = ${world.fuerte} where "idPerfil" = ${weak}`
      await tx`delete from perfil where id = ${weak}`
    }
    expect(await sendDuring(sql, move, () => send(id, world.token))).toMatchObject(FORBIDDEN)
  })

  it('by giving it the name of a system module', async () => {
    const id = await insertModulo(sql, `FUTURO ${method}`)
    const rename = (from: string, to: string): Step => {
      return (tx) =>
        tx`update modulo set "strNombreModulo" = ${to} where "strNombreModulo" = ${from}`
    }
    const exchange: Step = async (tx) => {
      await rename('PERFIL', 'ANTES PERFIL')(tx)
      await rename(`FUTURO ${method}`, 'PERFIL')(tx)
    }
    const { status, body } = await sendDuring(sql, exchange, () => send(id, world.token))
    await sql.begin(async (tx) => {
      await rename('PERFIL', `FUTURO ${method}`)(tx)
      await rename('ANTES PERFIL', 'PERFIL')(tx)
    })
    expect({ status, success: body.success }).toEqual(
      method === 'PUT' ? { status: 403, success: undefined } : { status: 200, success: false },
    )
  })
})

const beginWrite = (actor: object): Begin => {
  return (query) => query`select begin_write('{}', ${sql.json(actor as never)})`
}

/**
 * Makes a change while the transaction of `begin` is in progress, and begins another one while the
 * change waits. Returns the status of the change and the SQLSTATE of the second transaction.
 */
async function changeBetween(begin: Begin, change: () => Promise<AnswerWithHeaders>) {
  const beginAgain = () =>
    begin(sql).then(
      () => 'none',
      ({ code }) => code,
    )
  const [{ status }, code] = await sendInOrder(begin, change, beginAgain)
  return { status, code }
}

it('ends a session although its user always has a write in progress', async () => {
  const id = await insertUsuario(sql, 'insistente', world.debil)
  const token = await login('insistente', ADMIN.strPwd)
  const logout = () => call('POST', '/api/auth/logout', undefined, { token })
  const write = beginWrite({ id, ver: 0, enforced: false })
  expect(await changeBetween(write, logout)).toEqual({ status: 200, code: 'LL401' })
})

it('deletes a user although a login is always in progress', async () => {
  const id = await insertUsuario(sql, 'reincidente', world.debil)
  const login: Begin = (query) => query`
    select begin_sesion(to_jsonb(usuario), '{}') from usuario where id = ${id}
  `
  const remove = () => call('DELETE', `/api/usuario/${id}`)
  expect(await changeBetween(login, remove)).toEqual({ status: 200, code: 'none' })
})

it.each([
  ['password', { strPwd: 'el hash anterior' }],
  ['name', { strNombreUsuario: 'el nombre anterior' }],
])(
  'begins and records no session if the %s is no longer the one that was compared',
  async (changed, before) => {
    const id = await insertUsuario(sql, `renovado ${changed}`, world.debil)
    const [row] = await sql`
    select begin_sesion(to_jsonb(usuario) || ${sql.json(before)}, '{}') as answer
    from usuario
    where id = ${id}
  `
    expect(row?.answer).toBeNull()
    const logins = await sql`select from auditoria where accion = 'login' and "idEntidad" = ${id}`
    expect(logins).toHaveLength(0)
  },
)

it('answers a login with the user as the audit has it, although the user was moved meanwhile', async () => {
  const id = await insertUsuario(sql, 'trasladado', world.debil)
  let idPerfil: number | undefined
  const move: Step = async (tx) => {
    const [perfil] = await tx`
      insert into perfil ("strNombrePerfil") values ('Recién creado') returning id
    `
    idPerfil = perfil?.id
    await tx`
      update usuario
      set "idPerfil" = ${perfil?.id}, "strCorreo" = 'otro@x.es'
      where id = ${id}
    `
  }
  const credentials = { strNombreUsuario: 'trasladado', strPwd: ADMIN.strPwd, captchaToken: 'x' }
  const { status, body } = await sendDuring(sql, move, () =>
    call('POST', '/api/auth/login', credentials, { token: null }),
  )
  const now = { id, idPerfil }
  expect(status).toBe(200)
  expect(body.user).toEqual({
    ...now,
    nombre: 'trasladado',
    correo: 'otro@x.es',
    celular: null,
    imagenUrl: null,
  })
  expect(app.jwt.decode(body.token)).toMatchObject(now)
  const filas = await sql`
    select "idPerfil", "strNombrePerfil"
    from auditoria
    where accion = 'login' and "idEntidad" = ${id}
  `
  expect(filas).toEqual([{ idPerfil, strNombrePerfil: 'Recién creado' }])
})

it('renames a module although permission records are always being written', async () => {
  const share: Begin = (query) => query`select share_modulos()`
  const rename = () => call('PUT', `/api/modulo/${world.ajeno}`, { strNombreModulo: 'AJENO' })
  expect(await changeBetween(share, rename)).toEqual({ status: 200, code: 'none' })
})

/** Deletes all records of a profile. */
const clear = (idPerfil: number, token?: string) =>
  call('POST', '/api/permisos/guardar-matriz', { idPerfil }, { token })

describe('although a user with the profile always has a write in progress', () => {
  async function changeWhileBusy(change: (idPerfil: number) => Promise<AnswerWithHeaders>) {
    const { id, idPerfil } = await insertCaller(`ocupado${++turn}`)
    const actor = { id, ver: 0, modulo: 'USUARIO', accion: 'bitEditar', enforced: true }
    return changeBetween(beginWrite(actor), () => change(idPerfil))
  }

  it('takes permissions from the profile', async () => {
    expect(await changeWhileBusy((id) => clear(id))).toEqual({ status: 200, code: 'LL403' })
  })

  it('takes permissions from the profile, for a caller whose profile has the higher id', async () => {
    const revoke = async (idPerfil: number) => {
      await insertUsuario(sql, 'superior', await createAdministrador())
      return clear(idPerfil, await login('superior', ADMIN.strPwd))
    }
    expect(await changeWhileBusy(revoke)).toEqual({ status: 200, code: 'LL403' })
  })

  it('adds a permission record to the profile', async () => {
    const add = (id: number) => call('POST', '/api/permisos', record(id, world.ajeno, FLAGS))
    expect(await changeWhileBusy(add)).toEqual({ status: 200, code: 'none' })
  })
})

it('deletes a permission record that another write moves to another profile meanwhile', async () => {
  const { debil, fuerte, ajeno } = world
  await sql`delete from permisos_perfil where "idPerfil" = ${fuerte}`
  const id = await insertPermiso(sql, debil, ajeno)
  const move = () => call('PUT', `/api/permisos/${id}`, record(fuerte, ajeno, []))
  const remove = () => call('DELETE', `/api/permisos/${id}`)
  const answers = await sendInOrder(lockPerfil(debil), move, remove)
  expect(answers).toMatchObject([{ status: 200 }, { status: 200 }])
  expect(await sql`select from permisos_perfil where id = ${id}`).toEqual([])
})

it('does not deadlock when two records move between two profiles in both directions', async () => {
  const { debil, fuerte } = world
  const [una, otra] = [await insertModulo(sql, 'DE IDA'), await insertModulo(sql, 'DE VUELTA')]
  const ida = await insertPermiso(sql, debil, una)
  const vuelta = await insertPermiso(sql, fuerte, otra)
  const answers = await sendInOrder(
    lockPerfil(debil),
    () => call('PUT', `/api/permisos/${ida}`, record(fuerte, una, [])),
    () => call('PUT', `/api/permisos/${vuelta}`, record(debil, otra, [])),
  )
  expect(answers).toMatchObject([{ status: 200 }, { status: 200 }])
})

it('does not deadlock when two users edit each other', async () => {
  const ida = await insertCaller('ida')
  const vuelta = await insertCaller('vuelta')
  const edit = ({ id, idPerfil }: typeof ida, { token }: typeof ida) =>
    call('PUT', `/api/usuario/${id}`, editado(idPerfil), { token })
  const lock: Begin = (query) => query`select from usuario where id = ${vuelta.id} for update`
  const answers = await sendInOrder(
    lock,
    () => edit(vuelta, ida),
    () => edit(ida, vuelta),
  )
  expect(answers).toMatchObject([{ status: 200 }, { status: 200 }])
})

it('does not deadlock when two callers replace the matrix of each other’s profile', async () => {
  const una = await insertCaller('una')
  const otra = await insertCaller('otra')
  // The advisory locks of both profiles (sql/functions/begin_write.sql).
  const lock: Begin = (query) => query`
    select pg_advisory_xact_lock(73057, id)
    from perfil
    where id in (${una.idPerfil}, ${otra.idPerfil})
  `
  const answers = await sendInOrder(
    lock,
    () => clear(una.idPerfil, otra.token),
    () => clear(otra.idPerfil, una.token),
  )
  // The second caller has no permission any more.
  expect(answers).toMatchObject([{ status: 200 }, { status: 403 }])
})
