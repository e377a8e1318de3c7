import { expect, it } from 'vitest'
import { testApp } from './app.js'
import { addSessions } from './users.js'

const { call, sql } = await testApp()

const create = async (strNombreModulo: string) =>
  (await call('POST', '/api/modulo', { strNombreModulo })).body
/** Inserts `count` profiles, each with one record, which is for the module. */
const insertPerfiles = (to: typeof sql, count: number, idModulo: number) =>
  to.begin(async (tx) => {
    // Without the triggers the inserts take less time.
    await tx`set local session_replication_role = replica`
    await tx`
      with nuevos as (
        insert into perfil ("strNombrePerfil", "numPermisos")
        select ${idModulo} || '.' || n, 1 from generate_series(1, ${count}::integer) n
        returning id
      )
      insert into permisos_perfil ("idPerfil", "idModulo", "bitEditar")
      select id, ${idModulo}, true from nuevos
    `
  })
const search = async (text: string) =>
  (await call('GET', `/api/modulo?search=${encodeURIComponent(text)}`)).body.data

it('finds modules by a part of their name, in upper or lower case and in any script', async () => {
  for (const nombre of ['français', 'œuvre', 'склад', 'straße']) {
    const { data } = await create(nombre)
    for (const text of [nombre, nombre.toUpperCase(), nombre.slice(1, -1)]) {
      expect(await search(text)).toContainEqual(data)
    }
  }
})

it('renames a module that 12,000 profiles have records for, and deletes it with them', async () => {
  const { id } = (await create('de todos')).data
  await insertPerfiles(sql, 12_000, id)
  const url = `/api/modulo/${id}`
  for (const [method, body] of [['PUT', { strNombreModulo: 'otro nombre' }], ['DELETE']] as const) {
    expect(await call(method, url, body)).toMatchObject({ status: 200, body: { success: true } })
  }
  expect(await sql`select from modulo where id = ${id}`).toEqual([])
  expect(await sql`select from permisos_perfil where "idModulo" = ${id}`).toEqual([])
})

it('deletes a module with many records for a caller with limits, although the plans of the connection are older', async () => {
  const app = await testApp({ DATABASE_POOL_MAX: '1' })
  const [caller] = await addSessions(app, 1)
  const modulos = await app.sql<{ id: number }[]>`
    insert into modulo ("strNombreModulo") select 'M' || n from generate_series(1, 11) n returning id
  `
  await app.sql`insert into perfil ("strNombrePerfil") values ('Limitado')`
  await app.sql`insert into permisos_perfil ("idPerfil", "idModulo", "bitEditar", "bitEliminar")
    select 2, id, true, true from modulo`
  await app.sql`update usuario set "idPerfil" = 2 where id = ${caller?.id ?? 0}`
  // PostgreSQL reuses the plans that the connection has made for these few records. They read the
  // whole table only if PostgreSQL knows that it is this small.
  await app.sql`analyze perfil, permisos_perfil`

  for (const { id } of modulos) {
    const isLast = id === modulos.at(-1)?.id
    await insertPerfiles(app.sql, isLast ? 8000 : 1, id)
    const answer = await app.call('DELETE', `/api/modulo/${id}`, undefined, caller)
    expect(answer).toMatchObject({ status: 200, body: { success: true } })
  }
})
