import { beforeEach, describe, expect, it } from 'vitest'
import type { Sesion } from '../src/access/caller.js'
import { cacheMapas } from '../src/permisos/mapa.js'
import { FORBIDDEN, withoutHeaders } from './answers.js'
import { testApp } from './app.js'

const one = await testApp()
const two = await testApp({ DATABASE_URL: one.config.DATABASE_URL.url })
const { sql } = one
const { data: modulos } = (await one.call('GET', '/api/modulo/list')).body
const idModulo: number = modulos[0].id
const { id: permisosModulo } = modulos.find(
  ({ strNombreModulo }: { strNombreModulo: string }) => strNombreModulo === 'PERMISOS',
)
const { id: idPerfil } = (await one.call('POST', '/api/perfil', { strNombrePerfil: 'x' })).body.data
const url = `/api/permisos/mis-permisos/${idPerfil}`
const read = (service = one, headers = {}) => service.call('GET', url, undefined, { headers })
const write = (service: typeof one, permisos: object[]) =>
  service.call('POST', '/api/permisos/guardar-matriz', { idPerfil, permisos })

describe('the permission map', () => {
  it('is answered with 304 while it has not changed', async () => {
    await write(one, [{ idModulo, bitConsulta: true }])
    const first = await read()
    const { etag } = first.headers as { etag: string }
    expect(first).toMatchObject({
      status: 200,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'private, no-cache',
        etag: expect.stringMatching(/^".+"$/),
      },
    })
    const again = await read(two, { 'if-none-match': etag })
    expect(again).toMatchObject({ status: 304, headers: { etag } })
    expect(again.body).toBeUndefined()
    expect(again.headers['content-length'] ?? '0').toBe('0')
    await write(two, [])
    expect(await read(one, { 'if-none-match': etag })).toMatchObject({
      status: 200,
      body: { success: true, permisos: {} },
    })
  })

  it('is empty and has no ETag when no profile has the id', async () => {
    const { status, body, headers } = await one.call('GET', '/api/permisos/mis-permisos/999999')
    expect({ status, body }).toEqual({ status: 200, body: { success: true, permisos: {} } })
    expect(headers).not.toHaveProperty('etag')
  })

  it('is up to date in every replica as soon as a write is answered', async () => {
    for (let turn = 0; turn < 50; turn += 1) {
      const [writer, reader] = turn % 2 ? [one, two] : [two, one]
      const bitEditar = turn % 3 === 0
      await write(writer, [{ idModulo, bitEditar, bitDetalle: !bitEditar }])
      const { permisos } = (await read(reader)).body
      expect(Object.values(permisos)).toMatchObject([{ bitEditar, bitDetalle: !bitEditar }])
    }
  })

  it('is not kept under the version of the session if a write has changed it since', async () => {
    const versions = ['after the write', 'before the write']
    const fake = async () => [{ version: versions.shift(), nombreModulo: null }]
    const findMapa = cacheMapas(fake as never)
    const session = { idPerfil, versionPermisos: 'before the write' } as Sesion
    expect(await findMapa(session)).toMatchObject({ version: 'after the write' })
    // The database has been replaced by a standby that lacks the write.
    expect(await findMapa(session)).toMatchObject({ version: 'before the write' })
  })

  it('follows writes by other programs, with any SQL statement', async () => {
    const names = async () => Object.keys((await read()).body.permisos)
    await write(one, [{ idModulo }])
    const before = (await read()).body.permisos
    await sql`update permisos_perfil set "bitAgregar" = true where "idPerfil" = ${idPerfil}`
    expect((await read()).body.permisos).not.toEqual(before)
    await sql`update modulo set "strNombreModulo" = 'OTRO' where id = ${idModulo}`
    expect(await names()).toEqual(['OTRO'])
    await sql`delete from permisos_perfil where "idPerfil" = ${idPerfil}`
    expect(await names()).toEqual([])
    await sql`insert into permisos_perfil ("idPerfil", "idModulo") values (${idPerfil}, ${idModulo})`
    expect(await names()).toEqual(['OTRO'])
    await sql`truncate permisos_perfil`
    expect(await names()).toEqual([])
    await sql`update modulo set "strNombreModulo" = 'USUARIO' where id = ${idModulo}`
  })

  it('is not left by a truncate whose snapshot lacks records', async () => {
    const truncate = sql.begin('isolation level repeatable read', async (tx) => {
      await tx`select from modulo`
      await write(one, [{ idModulo }])
      await tx`truncate permisos_perfil`
    })
    await expect(truncate).rejects.toMatchObject({ code: '40001' })
  })
})

describe('the own permission map', () => {
  let user: { id: number; strNombreUsuario: string; idPerfil: number }
  let token: string
  let turn = 0
  const edited = (changes: object) =>
    one.call('PUT', `/api/usuario/${user.id}`, {
      ...user,
      strCorreo: `${user.strNombreUsuario}@ejemplo.com`,
      idEstadoUsuario: true,
      ...changes,
    })
  const ask = async (id = idPerfil) => {
    const path = `/api/permisos/mis-permisos/${id}`
    return withoutHeaders(await one.call('GET', path, undefined, { token }))
  }
  const EMPTY = { status: 200, body: { success: true, permisos: {} } }

  beforeEach(async () => {
    await write(one, [])
    turn += 1
    const name = `propio${turn}`
    const body = { strNombreUsuario: name, idPerfil, strPwd: 'x', strCorreo: `${name}@ejemplo.com` }
    const { data } = (await one.call('POST', '/api/usuario', body)).body
    user = { id: data.id, strNombreUsuario: name, idPerfil }
    token = await one.login(name, 'x')
  })

  it('is answered to a user without permissions, unlike the map of another profile', async () => {
    expect(await ask()).toEqual(EMPTY)
    expect(await ask(1)).toEqual(FORBIDDEN)
  })

  it('is the map of the user’s current profile, not of the profile in the token', async () => {
    const { body } = await one.call('POST', '/api/perfil', { strNombrePerfil: 'después' })
    const after = body.data.id
    expect((await edited({ idPerfil: after })).status).toBe(200)
    expect(await ask()).toEqual(FORBIDDEN)
    expect(await ask(after)).toEqual(EMPTY)
    const permiso = { idPerfil: after, idModulo: permisosModulo, bitConsulta: true }
    expect((await one.call('POST', '/api/permisos', permiso)).status).toBe(200)
    expect(await ask()).toEqual(EMPTY)
  })
})
