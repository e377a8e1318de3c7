import { beforeEach, describe, expect, it } from 'vitest'
import { DELETED, statusCodeAnswer, withoutHeaders } from './answers.js'
import { testApp } from './app.js'
import { ALL, endpoint, usuario } from './endpoints.js'
import { countWaiting } from './hold.js'

const { call, sql } = await testApp()

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

  it('returns pages of 5, in descending order of ids', async () => {
    expect(ids((await get('/api/perfil')).data)).toEqual([13, 12, 11, 10, 9])
    expect(ids((await get('/api/perfil?page=2')).data)).toEqual([8, 7, 6, 5, 4])
    const last = await get('/api/perfil?page=3')
    expect([ids(last.data), last.totalPages]).toEqual([[3, 2, 1], 3])
  })

  it('counts and pages only the profiles that match the filters', async () => {
    const search = encodeURIComponent('ÁREA')
    const areas = await get(`/api/perfil?search=${search}&page=2`)
    expect([ids(areas.data), areas.totalPages]).toEqual([[2], 2])
    const administrators = await get('/api/perfil?isAdmin=true')
    expect([ids(administrators.data), administrators.totalPages]).toEqual([[12, 9, 6, 3, 1], 1])
    const both = await get(`/api/perfil?search=${search}&isAdmin=false`)
    expect([ids(both.data), both.totalPages]).toEqual([[10, 8, 4, 2], 1])
  })
})

describe('PUT /api/perfil/:id, the administrator flag', () => {
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

  it('when it is set, replaces the records by one for each module, with every flag', async () => {
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

  it('when it is cleared, deletes all records of the profile', async () => {
    await change(true)
    const others = await permisos(1)
    await change(false)
    expect(await permisos()).toEqual([])
    expect(await permisos(1)).toEqual(others)
  })

  it('when it stays the same, leaves the records unchanged', async () => {
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

  it('changes neither profile nor records when a record cannot be written', async () => {
    const before = await permisos()
    await sql`alter table permisos_perfil add constraint roto check ("idModulo" <> 4) not valid`
    const { status, body } = await call('PUT', `/api/perfil/${id}`, {
      strNombrePerfil: 'Compras',
      bitAdministrador: true,
    })
    await sql`alter table permisos_perfil drop constraint roto`
    expect({ status, body }).toEqual(endpoint('PUT /api/perfil/:id').unexpected)
    expect(await permisos()).toEqual(before)
    expect((await get('/api/perfil/list')).data).toContainEqual({ id, strNombrePerfil: 'Ventas' })
  })
})

it('GET /api/perfil/list is ordered by id, and not by name', async () => {
  await sql`insert into perfil ("strNombrePerfil") values ('Zeta'), ('Alfa')`
  const { data } = await get('/api/perfil/list')
  const ids: number[] = data.map((perfil: { id: number }) => perfil.id)
  expect(ids).toEqual(ids.toSorted((a, b) => a - b))
  await sql`delete from perfil where "strNombrePerfil" in ('Zeta', 'Alfa')`
})

describe('POST and DELETE /api/perfil', () => {
  const send = async (method: 'POST' | 'PUT' | 'DELETE', path: string, body?: object) => {
    return withoutHeaders(await call(method, path, body))
  }
  const create = async (body: object) => (await send('POST', '/api/perfil', body)).body.data

  it('creates a profile, with every flag on every module when it is an administrator', async () => {
    const id = expect.any(Number)
    const otro = { strNombrePerfil: 'otro', bitAdministrador: false }
    expect(await create({ strNombrePerfil: 'otro' })).toEqual({ ...otro, id })
    const jefa = { strNombrePerfil: 'jefa', bitAdministrador: true }
    const created = await create(jefa)
    expect(created).toEqual({ ...jefa, id })
    const { data } = await get(`/api/permisos/por-perfil/${created.id}`)
    expect(data).toEqual(
      [1, 2, 3, 4].map((idModulo) => ({ id, idPerfil: created.id, idModulo, ...ALL })),
    )
  })

  it.each([
    [{}, 'El nombre es obligatorio'],
    [{ strNombrePerfil: ' ' }, 'El nombre es obligatorio'],
    [
      { strNombrePerfil: 'x', bitAdministrador: 'true' },
      'El campo bitAdministrador debe ser booleano',
    ],
  ])('answers 400 to %j', async (body, message) => {
    expect(await send('POST', '/api/perfil', body)).toEqual(statusCodeAnswer(400, message))
  })

  it('deletes a profile with its records, and answers 409 while users have it', async () => {
    const { id } = await create({ strNombrePerfil: 'fugaz' })
    await call('POST', '/api/permisos', { idPerfil: id, idModulo: 3 })
    const user = await call('POST', '/api/usuario', usuario('ana', { idPerfil: id }))
    const url = `/api/perfil/${id}`
    expect(await send('DELETE', url)).toEqual(
      statusCodeAnswer(409, 'El perfil está asignado a usuarios'),
    )
    await call('DELETE', `/api/usuario/${user.body.data.id}`)
    for (const _again of [1, 2]) expect(await send('DELETE', url)).toEqual(DELETED)
    expect((await get(`/api/permisos/por-perfil/${id}`)).data).toEqual([])
    expect(await send('DELETE', '/api/perfil/x')).toEqual(
      statusCodeAnswer(400, 'ID de perfil inválido'),
    )
  })

  it('never deletes a profile that a user gets at the same moment', async () => {
    const perfiles = await Promise.all(
      Array.from({ length: 16 }, (_, i) => create({ strNombrePerfil: `fugaz ${i}` })),
    )
    const user = (await call('POST', '/api/usuario', usuario('ana'))).body.data
    for (const { id: idPerfil } of perfiles) {
      const [moved, deleted] = await Promise.all([
        send('PUT', `/api/usuario/${user.id}`, usuario('ana', { idPerfil, strPwd: '' })),
        send('DELETE', `/api/perfil/${idPerfil}`),
      ])
      expect([
        [200, 409],
        [500, 200],
      ]).toContainEqual([moved.status, deleted.status])
    }
    await call('DELETE', `/api/usuario/${user.id}`)
  })
})

it.each(['POST', 'PUT'] as const)(
  'gives an administrator’s profile a record for a module that is added meanwhile: %s',
  async (method) => {
    const perfil = { strNombrePerfil: 'Dirección', bitAdministrador: true }
    const { body } = await call('POST', '/api/perfil', { ...perfil, bitAdministrador: false })
    const path = method === 'POST' ? '/api/perfil' : `/api/perfil/${body.data.id}`
    let written: ReturnType<typeof call> | undefined
    await sql.begin(async (tx) => {
      await tx`select lock_modulos()`
      written = call(method, path, perfil)
      await expect.poll(() => countWaiting(sql)).toBe(1)
      await tx`insert into modulo ("strNombreModulo") values (${`NUEVO ${method}`})`
    })
    const id = (await written)?.body.data.id
    const records = await sql`select from permisos_perfil where "idPerfil" = ${id}`
    const modulos = await sql`select from modulo`
    expect(records).toHaveLength(modulos.length)
  },
)

// This test comes last because no administrator is left after it.
it('clears the flag even on the last administrator profile', async () => {
  const perfil = { strNombrePerfil: 'ADMINISTRADOR', bitAdministrador: false }
  const answer = await call('PUT', '/api/perfil/1', perfil)
  expect(answer).toMatchObject({ status: 200, body: { data: { id: 1, ...perfil } } })
  expect((await call('GET', '/api/perfil')).status).toBe(403)
})
