import { beforeEach, describe, expect, it } from 'vitest'
import { testApp } from './app.js'
import { ALL } from './endpoints.js'
import { type Step, sendDuring } from './hold.js'

const { call, sql } = await testApp()

const permisos = async (idPerfil: number): Promise<object[]> => {
  const { status, body } = await call('GET', `/api/permisos/por-perfil/${idPerfil}`)
  expect(status).toBe(200)
  return body.data
}

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

  const succeed = async (bitAdministrador: boolean) => {
    const perfil = { strNombrePerfil: 'Compras', bitAdministrador }
    const { status, body } = await call('PUT', `/api/perfil/${id}`, perfil)
    expect({ status, body }).toEqual({
      status: 200,
      body: { success: true, data: { id, ...perfil } },
    })
  }

  it('when it is set, replaces the records by one for each module, with every flag', async () => {
    const others = await permisos(1)
    await succeed(true)
    const records = [1, 2, 3, 4].map((idModulo) => ({ idPerfil: id, idModulo, ...ALL }))
    expect(await permisos(id)).toMatchObject(records)
    expect(await permisos(1)).toEqual(others)
  })

  it('when it is cleared, deletes all records of the profile', async () => {
    await succeed(true)
    await succeed(false)
    expect(await permisos(id)).toEqual([])
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
