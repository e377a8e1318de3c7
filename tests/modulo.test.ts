import { expect, it } from 'vitest'
import { testApp } from './app.js'

const { call, sql } = await testApp()

const create = async (strNombreModulo: string) =>
  (await call('POST', '/api/modulo', { strNombreModulo })).body
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
  await sql.begin(async (tx) => {
    // Without the triggers the inserts take less time.
    await tx`set local session_replication_role = replica`
    await tx`insert into perfil ("strNombrePerfil", "numPermisos")
      select n, 1 from generate_series(1, 12000) n`
    await tx`insert into permisos_perfil ("idPerfil", "idModulo", "bitEditar")
      select id, ${id}, true from perfil where "numPermisos" = 1`
  })
  const url = `/api/modulo/${id}`
  for (const [method, body] of [['PUT', { strNombreModulo: 'otro nombre' }], ['DELETE']] as const) {
    expect(await call(method, url, body)).toMatchObject({ status: 200, body: { success: true } })
  }
  expect(await sql`select from modulo where id = ${id}`).toEqual([])
  expect(await sql`select from permisos_perfil where "idModulo" = ${id}`).toEqual([])
})
