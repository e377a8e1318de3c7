import { beforeEach, describe, expect, it } from 'vitest'
import { withoutHeaders } from './answers.js'
import { testApp } from './app.js'
import { ALL } from './endpoints.js'
import { type Step, sendDuring } from './hold.js'

const { call, sql } = await testApp()

const get = async (path: string) => {
  const { status, body } = await call('GET', path)
  expect(status).toBe(200)
  return body
}
const permisos = async (idPerfil: number): Promise<object[]> =>
  (await get(`/api/permisos/por-perfil/${idPerfil}`)).data
/** The records of an administrator's profile. */
const everyFlag = (idPerfil: number) =>
  [1, 2, 3, 4].map((idModulo) => ({ id: expect.any(Number), idPerfil, idModulo, ...ALL }))

describe('GET /api/perfil', async () => {
  await sql`
    insert into perfil (id, "strNombrePerfil", "bitAdministrador") overriding system value
    select n, case when n % 2 = 0 then 'Área ' else 'Zona ' end || n, n % 3 = 0
    from generate_series(2, 13) n order by n % 5
  `
  await sql`alter table perfil alter id restart with 14`

  const list = async (query: string) => {
    const { data, totalPages } = await get(`/api/perfil?${query}`)
    return { ids: data.map(({ id }: { id: number }) => id), totalPages }
  }

  it('returns pages of 5, in descending order of ids', async () => {
    expect(await list('')).toEqual({ ids: [13, 12, 11, 10, 9], totalPages: 3 })
    expect(await list('page=2')).toEqual({ ids: [8, 7, 6, 5, 4], totalPages: 3 })
    expect(await list('page=3')).toEqual({ ids: [3, 2, 1], totalPages: 3 })
  })

  it('counts and pages only the profiles that match the filters', async () => {
    const search = encodeURIComponent('ÁREA')
    expect(await list(`search=${search}&page=2`)).toEqual({ ids: [2], totalPages: 2 })
    expect(await list('isAdmin=true')).toEqual({ ids: [12, 9, 6, 3, 1], totalPages: 1 })
    expect(await list(`search=${search}&isAdmin=false`)).toEqual({
      ids: [10, 8, 4, 2],
      totalPages: 1,
    })
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
    const perfil = { strNombrePerfil: 'Compras', bitAdministrador }
    return withoutHeaders(await call('PUT', `/api/perfil/${id}`, perfil))
  }
  const succeed = async (bitAdministrador: boolean) => {
    const data = { id, strNombrePerfil: 'Compras', bitAdministrador }
    expect(await change(bitAdministrador)).toEqual({ status: 200, body: { success: true, data } })
  }

  it('when it is set, replaces the records by one for each module, with every flag', async () => {
    const others = await permisos(1)
    await succeed(true)
    expect(await permisos(id)).toEqual(everyFlag(id))
    expect(await permisos(1)).toEqual(others)
  })

  it('when it is cleared, deletes all records of the profile', async () => {
    await succeed(true)
    const others = await permisos(1)
    await succeed(false)
    expect(await permisos(id)).toEqual([])
    expect(await permisos(1)).toEqual(others)
  })

  it.each([false, true])('when it stays %s, leaves the records unchanged', async (flag) => {
    await sql`update perfil set "bitAdministrador" = ${flag} where id = ${id}`
    const before = await permisos(id)
    await succeed(flag)
    expect(await permisos(id)).toEqual(before)
  })

  it('when it is cleared, deletes the records also if the flag was set after the request began', async () => {
    const set: Step = (tx) => tx`update perfil set "bitAdministrador" = true where id = ${id}`
    await sendDuring(sql, set, () => succeed(false))
    expect(await permisos(id)).toEqual([])
  })
})

const create = async (strNombrePerfil: string, bitAdministrador = false) =>
  (await call('POST', '/api/perfil', { strNombrePerfil, bitAdministrador })).body.data.id as number

it('POST /api/perfil gives an administrator’s profile every flag on every module', async () => {
  const idPerfil = await create('jefa', true)
  expect(await permisos(idPerfil)).toEqual(everyFlag(idPerfil))
})

it.each(['POST', 'PUT'] as const)(
  'gives an administrator’s profile a record for a module that is added meanwhile: %s',
  async (method) => {
    const perfil = { strNombrePerfil: 'Dirección', bitAdministrador: true }
    const { body } = await call('POST', '/api/perfil', { ...perfil, bitAdministrador: false })
    const path = method === 'POST' ? '/api/perfil' : `/api/perfil/${body.data.id}`
    const lock: Step = (tx) => tx`select lock_modulos()`
    const written = await sendDuring(sql, lock, () => call(method, path, perfil), {
      meanwhile: (tx) => tx`insert into modulo ("strNombreModulo") values (${`NUEVO ${method}`})`,
    })
    const { id } = written.body.data
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
