import { beforeEach, describe, expect, it } from 'vitest'
import { testApp } from './app.js'

const { app, call } = await testApp()
const { sql } = app

const get = async (path: string) => {
  const { status, body } = await call('GET', path)
  expect(status).toBe(200)
  return body
}
const ids = (rows: { id: number }[]) => rows.map(({ id }) => id)

describe('GET /api/perfil', () => {
  beforeEach(async () => {
    await sql`delete from perfil where id > 1`
    await sql`
      insert into perfil (id, "strNombrePerfil", "bitAdministrador") overriding system value
      select n, case when n % 2 = 0 then 'Área ' else 'Zona ' end || n, n % 3 = 0
      from generate_series(2, 13) n order by n % 5
    `
    await sql`alter table perfil alter id restart with 14`
  })

  it('pages by 5, the newest first', async () => {
    expect(ids((await get('/api/perfil')).data)).toEqual([13, 12, 11, 10, 9])
    expect(ids((await get('/api/perfil?page=2')).data)).toEqual([8, 7, 6, 5, 4])
    const last = await get('/api/perfil?page=3')
    expect([ids(last.data), last.totalPages]).toEqual([[3, 2, 1], 3])
  })

  it('filters before it pages and counts', async () => {
    const search = encodeURIComponent('ÁREA')
    const areas = await get(`/api/perfil?search=${search}&page=2`)
    expect([ids(areas.data), areas.totalPages]).toEqual([[2], 2])
    const administrators = await get('/api/perfil?isAdmin=true')
    expect([ids(administrators.data), administrators.totalPages]).toEqual([[12, 9, 6, 3, 1], 1])
    const both = await get(`/api/perfil?search=${search}&isAdmin=false`)
    expect([ids(both.data), both.totalPages]).toEqual([[10, 8, 4, 2], 1])
  })

  it('lists all of them by id, unpaged', async () => {
    const { data } = await get('/api/perfil/list')
    expect(ids(data)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
  })
})

describe('PUT /api/perfil/:id, the administrator flag', () => {
  const ALL = {
    bitAgregar: true,
    bitEditar: true,
    bitConsulta: true,
    bitEliminar: true,
    bitDetalle: true,
  }
  let id: number

  beforeEach(async () => {
    const [perfil] = await sql<[{ id: number }]>`
      insert into perfil ("strNombrePerfil") values ('Ventas') returning id
    `
    id = perfil.id
    await sql`
      insert into permisos_perfil ("idPerfil", "idModulo", "bitDetalle") values (${id}, 2, true)
    `
  })

  const change = async (bitAdministrador: boolean) => {
    const { status, body } = await call('PUT', `/api/perfil/${id}`, {
      strNombrePerfil: 'Compras',
      bitAdministrador,
    })
    const data = { id, strNombrePerfil: 'Compras', bitAdministrador }
    expect({ status, body }).toEqual({ status: 200, body: { success: true, data } })
  }
  const permisos = async (idPerfil = id) =>
    (await get(`/api/permisos/por-perfil/${idPerfil}`)).data as { idModulo: number }[]

  it('raised: one record for every module, all flags true, and no other', async () => {
    const before = await permisos(1)
    await change(true)
    expect(await permisos()).toEqual(
      [1, 2, 3, 4].map((idModulo) => ({
        id: expect.any(Number),
        idPerfil: id,
        idModulo,
        ...ALL,
      })),
    )
    expect(await permisos(1)).toEqual(before)
  })

  it('lowered: no record is left', async () => {
    await change(true)
    const others = await permisos(1)
    await change(false)
    expect(await permisos()).toEqual([])
    expect(await permisos(1)).toEqual(others)
  })

  it('the same as before, either way: the records stay', async () => {
    const before = await permisos()
    await change(false)
    expect(await permisos()).toEqual(before)

    await change(true)
    await call('POST', '/api/permisos/guardar-matriz', {
      idPerfil: id,
      permisos: [{ idModulo: 3, bitConsulta: true }],
    })
    const matrix = await permisos()
    await change(true)
    expect(await permisos()).toEqual(matrix)
  })

  it('changes nothing at all when the records cannot be written', async () => {
    const before = await permisos()
    await sql`alter table permisos_perfil add constraint roto check ("idPerfil" <> ${sql.unsafe(
      String(id),
    )} or "idModulo" <> 4)`
    const { status, body } = await call('PUT', `/api/perfil/${id}`, {
      strNombrePerfil: 'Compras',
      bitAdministrador: true,
    })
    await sql`alter table permisos_perfil drop constraint roto`
    const message = 'Ocurrió un error interno al actualizar el perfil'
    expect({ status, body }).toEqual({ status: 500, body: { statusCode: 500, message } })
    expect(await permisos()).toEqual(before)
    expect((await get('/api/perfil/list')).data).toContainEqual({ id, strNombrePerfil: 'Ventas' })
  })
})
