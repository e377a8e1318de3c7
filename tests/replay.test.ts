import { beforeAll, expect, it } from 'vitest'
import { PNG, testApp } from './app.js'
import { FLAGS, flagsOf, usuario } from './endpoints.js'
import { insertModulo, insertPerfil, insertPermiso, insertUsuario, readTables } from './tables.js'

/** The number of writes in the story. */
const WRITES = 150
const SEED = 20_261_124
const PASSWORD = 'una clave de trabajo'

type Row = Record<string, any>
/** The rows of the four tables, by their ids. */
type Tables = Record<string, Table>
type Table = Record<number, Row>

const { sql, call, login } = await testApp()

let state = SEED
/** Returns a pseudo-random whole number from 0 to `limit` - 1. Each run has the same numbers. */
function random(limit: number) {
  // These are the constants of a linear congruential generator of 32 bits.
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 2 ** 32) * limit)
}
const pick = <T>(values: readonly T[]) => values[random(values.length)] as T

/**
 * Reads the four tables. The audit has no hashes, and what is derived from other columns is left
 * out.
 */
async function readRecords(): Promise<Tables> {
  const { usuario, perfil, modulo, permisos_perfil } = await readTables(sql)
  for (const { id, numPermisos } of perfil) {
    expect(permisos_perfil.filter(({ idPerfil }) => idPerfil === id)).toHaveLength(numPermisos)
  }
  return {
    usuario: byId(usuario.map((row) => ({ ...row, strPwd: '***' }))),
    perfil: byId(perfil.map(({ versionPermisos, numPermisos, ...row }) => row)),
    modulo: byId(modulo),
    permisos: byId(permisos_perfil),
  }
}

const byId = (rows: Row[]) => Object.fromEntries(rows.map((row) => [row.id, row]))

const readAudit = (): Promise<Row[]> => sql`select * from auditoria order by id`

const newTables = () => ({ usuario: {}, perfil: {}, modulo: {}, permisos: {} }) as Tables

/** Returns the tables after the changes in these rows of the audit. */
function replay(filas: Row[]) {
  const tables = newTables()
  for (const fila of filas) replayRow(tables, fila)
  return tables
}

function replayRow(tables: Tables, fila: Row) {
  const table = tables[fila.entidad]
  if (!table) return
  if (fila.entidad === 'permisos') replayPermisos(table, fila)
  else replayRecord(table, fila)
}

function replayRecord(table: Table, { accion, idEntidad, antes, despues }: Row) {
  const before = table[idEntidad]
  if (antes) expect({ ...before, ...withoutNames(antes) }).toEqual(before)
  delete table[idEntidad]
  if (accion === 'delete') return
  // An update by psql may give the record another id.
  const { id = idEntidad } = despues ?? {}
  table[id] = { ...before, ...withoutNames(despues ?? {}) }
}

/** Removes the name of the profile, which the audit adds to the id of the profile. */
const withoutNames = ({ nombrePerfil, ...fields }: Row) => fields

function replayPermisos(table: Table, { idEntidad: idPerfil, antes, despues }: Row) {
  for (const { id } of permisosIn(antes)) {
    expect(table).toHaveProperty([id])
    delete table[id]
  }
  for (const { nombreModulo, ...permiso } of permisosIn(despues)) table[permiso.id] = permiso
  if (!despues?.ids) return

  // A matrix replaces all records of the profile, so all have new ids, in the order of the modules.
  const own = Object.values(table).filter((permiso) => permiso.idPerfil === idPerfil)
  own.sort((a, b) => a.idModulo - b.idModulo)
  expect(despues.ids).toHaveLength(own.length)
  for (const [index, permiso] of own.entries()) {
    delete table[permiso.id]
    const id = despues.ids[index]
    table[id] = { ...permiso, id }
  }
}

const permisosIn = (fields: Row | null): Row[] => fields?.permisos ?? []

type Ids = { perfil: number; modulo: number; usuario: number; permiso: number }
type Write = (some: Ids) => Promise<unknown>

let turn = 0
/** Returns a name that nothing else has. */
const newName = (prefix: string) => {
  turn += 1
  return `${prefix}${turn}`
}

/** Returns five flags, each of which is set in half of the cases. */
const someFlags = () => flagsOf(random(2 ** FLAGS.length))

// The bodies of new and of changed records.
const permiso = ({ perfil, modulo }: Ids) => ({
  idPerfil: perfil,
  idModulo: modulo,
  ...someFlags(),
})
const perfil = () => ({ strNombrePerfil: newName('Perfil'), bitAdministrador: random(3) === 0 })
const modulo = () => ({ strNombreModulo: newName('MODULO') })
const persona = ({ perfil }: Ids) =>
  usuario(newName('usuario'), {
    idPerfil: perfil,
    strNumeroCelular: random(2) === 0 ? null : `55 4433 ${turn}`,
    idEstadoUsuario: random(2) === 1,
    ...(random(3) === 0 && { imagenBase64: PNG }),
  })

const send =
  (write: (some: Ids) => ['POST' | 'PUT' | 'DELETE', string, object?]): Write =>
  (some) => {
    const [method, path, body] = write(some)
    return call(method, `/api/${path}`, body)
  }

/**
 * A function for each kind of write. `some` has one id each of a profile, a module, a user and a
 * permission record. Sometimes no record has that id.
 */
const KINDS: Write[] = [
  send((some) => ['POST', 'permisos', permiso(some)]),
  // The record stays where it is, or moves to another profile or module.
  send((some) => ['PUT', `permisos/${some.permiso}`, permiso(some)]),
  send((some) => ['DELETE', `permisos/${some.permiso}`]),
  send((some) => {
    const modulos = new Set([some.modulo, 1 + random(4), 1 + random(4)])
    const permisos = [...modulos].map((modulo) => permiso({ ...some, modulo }))
    return ['POST', 'permisos/guardar-matriz', { idPerfil: some.perfil, permisos }]
  }),
  send((some) => ['POST', 'permisos/guardar-matriz', { idPerfil: some.perfil }]),
  send(() => ['POST', 'perfil', perfil()]),
  send((some) => ['PUT', `perfil/${some.perfil}`, perfil()]),
  send((some) => ['DELETE', `perfil/${some.perfil}`]),
  send(() => ['POST', 'modulo', modulo()]),
  send((some) => ['PUT', `modulo/${some.modulo}`, modulo()]),
  send((some) => ['DELETE', `modulo/${some.modulo}`]),
  send((some) => ['POST', 'usuario', persona(some)]),
  send((some) => ['PUT', `usuario/${some.usuario}`, persona(some)]),
  send((some) => ['DELETE', `usuario/${some.usuario}`]),
  // Two sessions begin and end beside the others.
  async () => {
    const token = await login('carla', PASSWORD)
    await call('POST', '/api/auth/logout', undefined, { token })
  },
  async () => {
    const token = await login('diego', PASSWORD)
    const claves = { strPwd: PASSWORD, strPwdNueva: 'otra clave' }
    const { body } = await call('PUT', '/api/auth/password', claves, { token })
    const back = { strPwd: 'otra clave', strPwdNueva: PASSWORD }
    await call('PUT', '/api/auth/password', back, { token: body.token })
  },
  // Writes by psql: another name, a cascade, and several rows and profiles in one statement.
  ({ modulo }) => sql`
    update modulo set "strNombreModulo" = ${newName('POR PSQL ')} where id = ${modulo} and id > 4
  `,
  ({ modulo }) => sql`delete from modulo where id = ${modulo} and id > 4`,
  ({ perfil }) => sql`
    update permisos_perfil set "bitEditar" = not "bitEditar" where "idPerfil" in (2, ${perfil})
  `,
  ({ modulo }) => sql`
    insert into permisos_perfil ("idPerfil", "idModulo")
    select perfil.id, modulo.id
    from perfil
    join modulo on modulo.id = ${modulo}
    where perfil.id % 3 = 0
    on conflict do nothing
  `,
  () => sql`update usuario set "strNumeroCelular" = id::text || ${turn} where id % 2 = 0`,
]

/**
 * Returns the id of one record of each kind, sometimes an unknown one. The administrator, carla and
 * diego, and their profile, are never chosen.
 */
async function someIds(): Promise<Ids> {
  const [rows] = await sql`
    select array(select id from perfil where id > 1 order by id) as perfil,
      array(select id from modulo order by id) as modulo,
      array(select id from usuario where id > 3 order by id) as usuario,
      array(select id from permisos_perfil where "idPerfil" > 1 order by id) as permiso
  `
  const one = (ids: number[]) => (random(12) === 0 ? 99_999 : (pick(ids) ?? 99_999))
  return {
    perfil: one(rows?.perfil),
    modulo: one(rows?.modulo),
    usuario: one(rows?.usuario),
    permiso: one(rows?.permiso),
  }
}

beforeAll(async () => {
  for (const nombre of ['carla', 'diego']) {
    await call('POST', '/api/usuario', usuario(nombre, { strPwd: PASSWORD }))
  }
})

it('the rows of the audit, in their order, give the four tables after each write', async () => {
  const compare = async () => expect(replay(await readAudit())).toEqual(await readRecords())
  for (let index = 0; index < WRITES; index += 1) {
    await pick(KINDS)(await someIds())
    await compare()
  }
  await sql`truncate permisos_perfil`
  await compare()

  // psql can give a record another id, while no other record names it.
  const idPerfil = await insertPerfil(sql, 'Con pocos permisos')
  await insertModulo(sql, 'Renumerado')
  await insertPerfil(sql, 'Renumerado')
  await insertPermiso(sql, idPerfil, await insertModulo(sql, 'De siempre'))
  const idUsuario = await insertUsuario(sql, 'renumerado', idPerfil)
  await sql`update modulo set id = default where "strNombreModulo" = 'Renumerado'`
  await sql`update perfil set id = default where "strNombrePerfil" = 'Renumerado'`
  await sql`update permisos_perfil set id = default where "idPerfil" = ${idPerfil}`
  await sql`update usuario set id = default where id = ${idUsuario}`
  await compare()

  // The story has every kind of change.
  const kinds = (await readAudit()).map(({ entidad, accion }) => `${entidad} ${accion}`)
  for (const entidad of ['usuario', 'perfil', 'modulo', 'permisos']) {
    for (const accion of ['insert', 'update', 'delete']) {
      expect(kinds).toContain(`${entidad} ${accion}`)
    }
  }
  for (const accion of ['login', 'logout', 'password']) {
    expect(kinds).toContain(`usuario ${accion}`)
  }
}, 120_000)

const valuesOf = (table: Table | undefined) => Object.values(table ?? {})

/**
 * Returns for each user the ids of the rows by which the user got the flag `bitEditar` on the
 * module with this name, computed from the first row to the last one. Users without such rows are
 * left out.
 */
function origins(filas: Row[], nombre: string) {
  const tables = newTables()
  /** For each profile that holds the permission, the row by which it got it. */
  const since: Record<number, number> = {}
  const found: Record<number, Set<number>> = {}
  let before: Table = {}
  for (const fila of filas) {
    replayRow(tables, fila)
    const modulo = valuesOf(tables.modulo).find((row) => row.strNombreModulo === nombre)
    const holders = new Set([
      ...valuesOf(tables.perfil).flatMap((row) => (row.bitAdministrador ? [row.id] : [])),
      ...valuesOf(tables.permisos).flatMap((row) =>
        row.idModulo === modulo?.id && row.bitEditar ? [row.idPerfil] : [],
      ),
    ])
    for (const id of Object.keys(since).map(Number)) if (!holders.has(id)) delete since[id]
    for (const id of holders) since[id] ??= fila.id
    for (const { id, idPerfil } of valuesOf(tables.usuario)) {
      const got = since[idPerfil]
      if (got === undefined) continue
      found[id] ??= new Set()
      found[id].add(got)
      if (before[id]?.idPerfil !== idPerfil) found[id].add(fila.id)
    }
    before = { ...tables.usuario }
  }
  return found
}

it('origen_de_permiso returns each row by which a user got a permission, or those of them that delete_auditoria has left', async () => {
  state = SEED
  const readUsers = async () => {
    const rows =
      await sql`select distinct "idEntidad" as id from auditoria where entidad = 'usuario' order by id`
    return rows.map(({ id }) => id)
  }
  const users = await readUsers()
  const perfiles = await sql`
    insert into perfil ("strNombrePerfil") values ('A'), ('B'), ('C') returning id
  `
  const perfil = () => pick(perfiles)?.id
  const names = ['UNO', 'DOS', 'TRES']
  const name = () => pick(names)
  const writes = [
    () => sql`update usuario set "idPerfil" = ${perfil()} where id = ${pick(users)}`,
    () =>
      sql`insert into usuario ${sql({ ...usuario(newName('x'), { idPerfil: perfil() }), strPwd: 'x' })}`,
    () => sql`delete from usuario where id > 1 and id = ${pick(users)} and ${random(5) === 0}`,
    () => sql`update perfil set "bitAdministrador" = ${random(8) === 0} where id = ${perfil()}`,
    // One of the names stays free, so that modules can be renamed.
    () => sql`
      insert into modulo ("strNombreModulo")
      select ${name()}
      where (select count(*) from modulo where "strNombreModulo" = any(${names})) < 2
      on conflict do nothing
    `,
    () => sql`
      update modulo set "strNombreModulo" = nuevo
      from (select ${name()} as nuevo) as cambio
      where "strNombreModulo" = ${name()} and nuevo not in (select "strNombreModulo" from modulo)
    `,
    // Deletions are rare, so that the rows that are left do not tell all names.
    () => sql`delete from modulo where "strNombreModulo" = ${name()} and ${random(5) === 0}`,
    () => sql`
      insert into permisos_perfil ("idPerfil", "idModulo", "bitEditar")
      select ${perfil()}, id, ${random(3) > 0} from modulo where "strNombreModulo" = ${name()}
      on conflict ("idPerfil", "idModulo") do update set "bitEditar" = excluded."bitEditar"
    `,
  ]
  for (let index = 0; index < 2 * WRITES; index += 1) await pick(writes)()

  const everybody = await readUsers()
  const ask = () => sql<{ id: number; nombre: string; origen: number[] }[]>`
    select id, nombre,
      array(select id::float8 from origen_de_permiso(usuario.id, nombre, 'bitEditar')) as origen
    from unnest(${everybody}::integer[]) as usuario (id)
    cross join unnest(${names}::text[]) as nombre
  `
  const before = await ask()
  const filas = (await readAudit()).map((fila) => ({ ...fila, id: Number(fila.id) }))
  const found = Object.fromEntries(names.map((nombre) => [nombre, origins(filas, nombre)]))
  for (const { id, nombre, origen } of before) {
    expect(origen, `${id} ${nombre}`).toEqual(
      [...(found[nombre]?.[id] ?? [])].sort((a, b) => a - b),
    )
  }
  const rows = before.flatMap(({ origen }) => origen).sort((a, b) => a - b)

  // The story has each way to get a permission.
  const ways = await sql`
    select distinct entidad || ' ' || accion as way from auditoria where id = any(${rows}) order by way
  `
  expect(ways.map(({ way }) => way)).toEqual([
    'modulo update',
    'perfil insert',
    'perfil update',
    'permisos insert',
    'permisos update',
    'usuario insert',
    'usuario update',
  ])
  const [middle = NaN] = rows.slice(rows.length / 2)
  await sql`select delete_auditoria(fecha) from auditoria where id = ${middle}`
  const left = before.map((row) => ({ ...row, origen: row.origen.filter((id) => id >= middle) }))
  expect(await ask()).toEqual(left)
})
