import { expect, it } from 'vitest'
import { DELETED } from './answers.js'
import { testApp } from './app.js'

const { call, readLog, sql } = await testApp()

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

it('does not deadlock when a module is deleted beside matrices that name it', async () => {
  const { body } = await call('POST', '/api/perfil', { strNombrePerfil: 'otro' })
  const { id } = (await create('disputado')).data
  const replace = (idPerfil: number) =>
    call('POST', '/api/permisos/guardar-matriz', {
      idPerfil,
      permisos: [{ idModulo: id }, { idModulo: 2 }],
    })
  const [deleted] = await Promise.all([
    call('DELETE', `/api/modulo/${id}`),
    ...Array.from({ length: 24 }, (_, n) => replace(n % 2 ? body.data.id : 1)),
  ])
  expect(deleted.body).toEqual(DELETED.body)
  expect(readLog()).not.toContain('deadlock')
})

it('renames a module that 20,000 profiles have records for, and deletes it with them', async () => {
  const { id } = (await create('de todos')).data
  await sql.begin(async (tx) => {
    // Without the triggers the inserts take less time.
    await tx`set local session_replication_role = replica`
    await tx`insert into perfil ("strNombrePerfil", "numPermisos")
      select n, 1 from generate_series(1, 20000) n`
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
