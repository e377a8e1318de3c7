import { beforeEach, describe, expect, it } from 'vitest'
import { MATRIX_REPLACED, withoutHeaders } from './answers.js'
import { testApp } from './app.js'
import { FLAGS, flagsOf } from './endpoints.js'

const { call, sql } = await testApp()
await sql`insert into perfil ("strNombrePerfil") values ('Ventas'), ('Compras')`
await sql`insert into modulo ("strNombreModulo") select 'M' || n from generate_series(5, 9) n`

beforeEach(() => sql`truncate permisos_perfil restart identity`)

const get = async (path: string) => {
  const { status, body } = await call('GET', path)
  expect(status).toBe(200)
  return body
}
const ids = (rows: { id: number }[]) => rows.map(({ id }) => id)
const insert = (...keys: [idPerfil: number, idModulo: number][]) =>
  sql`insert into permisos_perfil ${sql(keys.map(([idPerfil, idModulo]) => ({ idPerfil, idModulo })))}`

describe('GET /api/permisos', () => {
  it('answers totalPages 1 when there is no record', async () => {
    expect(await get('/api/permisos')).toEqual({ success: true, data: [], totalPages: 1 })
  })

  it('returns pages of 5 in ascending order of ids', async () => {
    for (const idPerfil of [2, 3]) for (let m = 1; m <= 6; m++) await insert([idPerfil, m])
    // Now the order of the modules is another one, as is that of the rows in the table.
    await sql`update permisos_perfil set "idModulo" = 9 where id = 2`
    const pages = await Promise.all([1, 2, 3].map((page) => get(`/api/permisos?page=${page}`)))
    expect(pages.map(({ data }) => ids(data))).toEqual([
      [1, 2, 3, 4, 5],
      [6, 7, 8, 9, 10],
      [11, 12],
    ])
    expect(pages.map(({ totalPages }) => totalPages)).toEqual([3, 3, 3])
    const ofOne = await get('/api/permisos/por-perfil/2')
    expect(ids(ofOne.data)).toEqual([1, 2, 3, 4, 5, 6])
    await sql`delete from permisos_perfil where id > 10`
    expect((await get('/api/permisos')).totalPages).toBe(2)
  })
})

it('stores each of the five flags under its own name', async () => {
  for (const bit of FLAGS.keys()) {
    const record = { idPerfil: 2, idModulo: bit + 1, ...flagsOf(1 << bit) }
    const { body } = await call('POST', '/api/permisos', record)
    expect(body).toEqual({ success: true, data: { id: bit + 1, ...record } })
    const opposite = { ...record, ...flagsOf(~(1 << bit)) }
    const updated = await call('PUT', `/api/permisos/${bit + 1}`, opposite)
    expect(updated.body).toEqual({ success: true, data: { id: bit + 1, ...opposite } })
  }
})

describe('POST /api/permisos/guardar-matriz', () => {
  const save = async (body: object) => {
    return withoutHeaders(await call('POST', '/api/permisos/guardar-matriz', body))
  }
  const matrix = async () =>
    (await get('/api/permisos/por-perfil/2')).data.map(
      ({ id: _, idPerfil: __, ...entry }: { id: number; idPerfil: number }) => entry,
    )

  beforeEach(() => insert([2, 1], [2, 2]))

  it('replaces the records of the profile, and stores flags that are falsy or omitted as false', async () => {
    const falsy = { bitAgregar: null, bitEditar: 0, bitConsulta: '', bitEliminar: false }
    const permisos = [{ idModulo: '4', bitDetalle: true, ...falsy }]
    expect(await save({ idPerfil: 2, permisos })).toEqual(MATRIX_REPLACED)
    expect(await matrix()).toEqual([{ idModulo: 4, ...flagsOf(16) }])
  })

  it('ignores unknown keys of an entry, even those that PostgreSQL could not store', async () => {
    const unknown = { '\0': 'a\0b', '\ud800': '\ud800', id: 7, idPerfil: 3 }
    expect(await save({ idPerfil: 2, permisos: [{ idModulo: 4, ...unknown }] })).toEqual(
      MATRIX_REPLACED,
    )
    expect(await matrix()).toEqual([{ idModulo: 4, ...flagsOf(0) }])
  })

  it('uses up no ids for a matrix with unknown modules', async () => {
    const lastId = () => sql`select last_value from permisos_perfil_id_seq`
    const before = await lastId()
    const answer = await save({ idPerfil: 2, permisos: [{ idModulo: 4 }, { idModulo: 1000 }] })
    expect(answer.status).toBe(500)
    expect(await lastId()).toEqual(before)
  })

  it.each([[{}], [{ permisos: null }], [{ permisos: [] }]])(
    'deletes all records of the profile for %j',
    async (body) => {
      expect(await save({ idPerfil: 2, ...body })).toEqual(MATRIX_REPLACED)
      expect(await matrix()).toEqual([])
    },
  )
})

describe('the modules and the profile of many records', () => {
  /** Builds a service with one connection, and with the profile 2. */
  async function appThatCountsScans() {
    const { call, pool, sql } = await testApp({ DATABASE_POOL_MAX: '1' })
    await call('POST', '/api/perfil', { strNombrePerfil: 'Ventas' })
    const save = (permisos: object[]) =>
      call('POST', '/api/permisos/guardar-matriz', { idPerfil: 2, permisos })
    const insertModulos = (count: number) =>
      sql.begin(async (tx) => {
        // Without the triggers the inserts take less time.
        await tx`set local session_replication_role = replica`
        await tx`insert into modulo ("strNombreModulo")
          select 'M' || n from generate_series(1, ${count}::integer) n`
      })
    /** Returns how often the whole table of modules has been read. */
    async function countScans() {
      // The connection reports its own statistics now.
      await pool`select pg_stat_force_next_flush()`
      const [row] = await sql`
        select seq_scan::integer from pg_stat_user_tables where relname = 'modulo'
      `
      return row?.seq_scan as number
    }
    return { call, sql, save, insertModulos, countScans }
  }

  it('are checked without a scan of all modules for each of the 2,000 records that the administrator flag writes', async () => {
    const { call, sql, save, insertModulos, countScans } = await appThatCountsScans()
    // PostgreSQL reuses a plan that a connection has used a few times. These plans are made for
    // the four modules that exist at this moment. They read the whole table only if PostgreSQL
    // knows that it is this small.
    await sql`analyze modulo`
    for (let n = 0; n < 10; n++) await save([{ idModulo: 1 }, { idModulo: 2 }])
    await insertModulos(1996)

    const scans = await countScans()
    const perfil = { strNombrePerfil: 'Ventas', bitAdministrador: true }
    expect(await call('PUT', '/api/perfil/2', perfil)).toMatchObject({ status: 200 })
    expect((await countScans()) - scans).toBeLessThan(200)
  })

  it('are checked in time when a matrix has 5,000 of them, although the plans of the connection are from a time of four modules', async () => {
    const { sql, save, insertModulos } = await appThatCountsScans()
    await sql`analyze modulo`
    for (let n = 0; n < 10; n++) await save([{ idModulo: 1 }, { idModulo: 2 }])
    await insertModulos(30_000)

    const permisos = await sql`
      select id as "idModulo" from modulo order by id desc limit 5000
    `
    expect(await save(permisos)).toMatchObject({ status: 200 })
  })

  it('are checked without a scan of all modules for each of 200 records', async () => {
    const { sql, save, insertModulos, countScans } = await appThatCountsScans()
    await insertModulos(196)
    await sql`vacuum analyze modulo`

    const permisos = await sql`select id as "idModulo" from modulo`
    const scans = await countScans()
    expect(await save(permisos)).toMatchObject({ status: 200 })
    expect((await countScans()) - scans).toBeLessThan(20)
  })
})
