import { describe, expect, it } from 'vitest'
import type { Sesion } from '../src/access/caller.js'
import { cacheMapas } from '../src/permisos/mapa.js'
import { testApp } from './app.js'
import { usuario } from './endpoints.js'

const one = await testApp()
const two = await testApp({ DATABASE_URL: one.config.DATABASE_URL.url })
const { sql } = one
/** The id of the module USUARIO. */
const idModulo = 1
const perfil = await one.call('POST', '/api/perfil', { strNombrePerfil: 'x' })
const idPerfil: number = perfil.body.data.id
await one.call('POST', '/api/usuario', usuario('ana', { idPerfil }))
const token = await one.login('ana', 'una clave')

/** Reads the map of ana's own profile, with her session. It comes from the cache. */
const read = (service = one, headers = {}) =>
  service.call('GET', `/api/permisos/mis-permisos/${idPerfil}`, undefined, { token, headers })
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

  it('has no ETag when no profile has the id', async () => {
    const { status, headers } = await one.call('GET', '/api/permisos/mis-permisos/999999')
    expect(status).toBe(200)
    expect(headers).not.toHaveProperty('etag')
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

  it('is answered although other maps take its place in the cache while it is read', async () => {
    const name = 'x'.repeat(12 * 1024 * 1024)
    const rows = (version: string, nombreModulo: string) => [{ version, nombreModulo }]
    let answer = (_: object[]) => {}
    const slow = new Promise<object[]>((resolve) => {
      answer = resolve
    })
    const fake = (_text: unknown, _flags: unknown, id: number) =>
      id === 0 ? slow : rows(`${id}`, name)
    const findMapa = cacheMapas(fake as never)
    const find = (id: number) => findMapa({ idPerfil: id, versionPermisos: `${id}` } as Sesion)
    const waiting = find(0)
    for (const id of [1, 2, 3]) await find(id)
    answer(rows('0', 'M'))
    expect((await waiting).version).toBe('0')
  })

  it('follows writes by other programs, with any SQL statement', async () => {
    const names = async () => Object.keys((await read()).body.permisos)
    await write(one, [{ idModulo }])
    const before = (await read()).body.permisos
    await sql`update permisos_perfil set "bitAgregar" = true where "idPerfil" = ${idPerfil}`
    expect((await read()).body.permisos).not.toEqual(before)
    await sql`delete from permisos_perfil where "idPerfil" = ${idPerfil}`
    expect(await names()).toEqual([])
    await sql`insert into permisos_perfil ("idPerfil", "idModulo") values (${idPerfil}, ${idModulo})`
    expect(await names()).toEqual(['USUARIO'])
    await sql`truncate permisos_perfil`
    expect(await names()).toEqual([])
  })

  it('makes a truncate fail that does not see all records', async () => {
    const truncate = sql.begin('isolation level repeatable read', async (tx) => {
      await tx`select from modulo`
      await write(one, [{ idModulo }])
      await tx`truncate permisos_perfil`
    })
    await expect(truncate).rejects.toMatchObject({ code: '40001' })
  })
})
