import { describe, expect, it } from 'vitest'
import { DELETED, successFalseAnswer, withoutHeaders } from './answers.js'
import { testApp } from './app.js'

const { call, readLog, sql } = await testApp()

const get = async (path: string) => {
  const { status, body } = await call('GET', path)
  expect(status).toBe(200)
  return body
}
const ids = (rows: { id: number }[]) => rows.map(({ id }) => id)

await sql`
  insert into modulo (id, "strNombreModulo") overriding system value
  select n, case when n % 2 = 0 then 'ALMACÉN ' else 'CAJA ' end || n
  from generate_series(5, 17) n order by n % 5
`
await sql`alter table modulo alter id restart with 18`

it('GET /api/modulo returns pages of 5, in descending order of ids', async () => {
  expect(ids((await get('/api/modulo')).data)).toEqual([17, 16, 15, 14, 13])
  expect(ids((await get('/api/modulo?page=2')).data)).toEqual([12, 11, 10, 9, 8])
  const last = await get('/api/modulo?page=4')
  expect([ids(last.data), last.totalPages]).toEqual([[2, 1], 4])
})

it('GET /api/modulo/list returns all modules, in ascending order of ids', async () => {
  const all = Array.from({ length: 17 }, (_, n) => n + 1)
  expect(ids((await get('/api/modulo/list')).data)).toEqual(all)
})

it('GET /api/modulo counts and pages only the modules that match the search', async () => {
  const path = `/api/modulo?search=${encodeURIComponent('almacén')}`
  const first = await get(path)
  expect([ids(first.data), first.totalPages]).toEqual([[16, 14, 12, 10, 8], 2])
  const second = await get(`${path}&page=2`)
  expect([ids(second.data), second.totalPages]).toEqual([[6], 2])
  expect(await get(`${path}&page=9`)).toMatchObject({ data: [], totalPages: 2 })
})

it('refuses a name that differs from another only in case, and lets a module keep its own name', async () => {
  const { body } = await call('POST', '/api/modulo', { strNombreModulo: 'órdenes' })
  expect(body).toEqual({ success: true, data: { id: 18, strNombreModulo: 'ÓRDENES' } })
  const again = await call('POST', '/api/modulo', { strNombreModulo: 'Órdenes' })
  expect([again.status, again.body]).toEqual([
    200,
    { success: false, message: 'No se pudo crear el módulo en la base de datos.' },
  ])
  expect(readLog()).not.toContain('unexpected failure')
  const kept = await call('PUT', '/api/modulo/18', { strNombreModulo: 'órDENES' })
  expect(kept.body).toEqual(body)
})

it('finds modules by a part of their name, in upper or lower case and in any script', async () => {
  for (const nombre of ['français', 'œuvre', 'склад', 'straße']) {
    const { body } = await call('POST', '/api/modulo', { strNombreModulo: nombre })
    for (const search of [nombre, nombre.toUpperCase(), nombre.slice(1, -1)]) {
      const found = await get(`/api/modulo?search=${encodeURIComponent(search)}`)
      expect(found.data).toContainEqual(body.data)
    }
    await call('DELETE', `/api/modulo/${body.data.id}`)
  }
})

it('creates one module when ten requests with the same name arrive at once', async () => {
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => call('POST', '/api/modulo', { strNombreModulo: 'única' })),
  )
  expect(answers.filter(({ body }) => body.success)).toHaveLength(1)
  expect((await get(`/api/modulo?search=${encodeURIComponent('única')}`)).data).toHaveLength(1)
})

it('limits a name to 255 characters after its conversion to upper case', async () => {
  const create = (strNombreModulo: string) => call('POST', '/api/modulo', { strNombreModulo })
  // The letter ß becomes two letters in upper case.
  expect((await create('ß'.repeat(128))).body).toEqual({
    success: false,
    message: 'El campo strNombreModulo no puede superar los 255 caracteres',
  })
  expect((await create('ß'.repeat(127))).body).toMatchObject({
    data: { strNombreModulo: 'S'.repeat(254) },
  })
})

describe('DELETE /api/modulo/:id', () => {
  const remove = async (id: unknown) => withoutHeaders(await call('DELETE', `/api/modulo/${id}`))
  const create = async (strNombreModulo: string) =>
    (await call('POST', '/api/modulo', { strNombreModulo })).body.data.id
  const replace = (idPerfil: number, ...idModulos: number[]) =>
    call('POST', '/api/permisos/guardar-matriz', {
      idPerfil,
      permisos: idModulos.map((idModulo) => ({ idModulo, bitConsulta: true })),
    })

  it('deletes a module with its permission records, and gives the same answer when repeated', async () => {
    const id = await create('fugaz')
    await replace(1, id)
    for (const _again of [1, 2]) expect(await remove(id)).toEqual(DELETED)
    expect((await get('/api/permisos/por-perfil/1')).data).toEqual([])
  })

  it.each([
    ['x', 'ID de módulo inválido.'],
    [4, 'No se puede eliminar un módulo del sistema.'],
  ])('answers success false for the id %s', async (id, message) => {
    expect(await remove(id)).toEqual(successFalseAnswer(200, message))
  })

  it('does not deadlock with matrices that name the module', async () => {
    const { body } = await call('POST', '/api/perfil', { strNombrePerfil: 'otro' })
    const id = await create('disputado')
    const [deleted] = await Promise.all([
      remove(id),
      ...Array.from({ length: 24 }, (_, i) => replace(i % 2 ? body.data.id : 1, id, 2)),
    ])
    expect(deleted).toEqual(DELETED)
    expect(readLog()).not.toContain('deadlock')
  })
})

it('renames and deletes a module that 20,000 profiles have records for', async () => {
  const { data } = (await call('POST', '/api/modulo', { strNombreModulo: 'de todos' })).body
  await sql.begin(async (tx) => {
    // Without the triggers the inserts take less time.
    await tx`set local session_replication_role = replica`
    await tx`insert into perfil ("strNombrePerfil", "numPermisos")
      select n, 1 from generate_series(1, 20000) n`
    await tx`insert into permisos_perfil ("idPerfil", "idModulo", "bitEditar")
      select id, ${data.id}, true from perfil where "numPermisos" = 1`
  })
  const url = `/api/modulo/${data.id}`
  for (const [method, body] of [['PUT', { strNombreModulo: 'otro nombre' }], ['DELETE']] as const) {
    expect(await call(method, url, body)).toMatchObject({ status: 200, body: { success: true } })
  }
  expect(await sql`select from permisos_perfil where "idModulo" = ${data.id}`).toEqual([])
})
