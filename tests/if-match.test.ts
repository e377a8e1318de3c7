import { expect, it } from 'vitest'
import { FORBIDDEN, MATRIX_REPLACED, statusCodeAnswer, withoutHeaders } from './answers.js'
import { testApp } from './app.js'
import { usuario } from './endpoints.js'
import { type Step, sendDuring } from './hold.js'

const first = await testApp()
const second = await testApp({ DATABASE_URL: first.config.DATABASE_URL.url })
const { sql, call } = first

const CHANGED = statusCodeAnswer(412, 'Los permisos han cambiado. Vuelva a cargarlos.')
const UNKNOWN = '"5a3c7f3e-9a0b-4c62-9f0e-1d2c3b4a5f60"'

const addPerfil = async (): Promise<number> =>
  (await call('POST', '/api/perfil', { strNombrePerfil: 'P' })).body.data.id
const read = (idPerfil: number) => call('GET', `/api/permisos/por-perfil/${idPerfil}`)
const save = (idPerfil: number, permisos: object[], ifMatch?: string, through = first) =>
  through.call(
    'POST',
    '/api/permisos/guardar-matriz',
    { idPerfil, permisos },
    { headers: ifMatch === undefined ? {} : { 'if-match': ifMatch } },
  )
const tagOf = ({ headers }: { headers: Record<string, unknown> }) => String(headers.etag)

it('the records of a profile and a saved matrix have the same ETag while nothing changes', async () => {
  const idPerfil = await addPerfil()
  const before = await read(idPerfil)
  expect(tagOf(before)).toMatch(/^"[-\da-f]{36}"$/)
  const saved = await save(idPerfil, [{ idModulo: 1 }], tagOf(before))
  expect(withoutHeaders(saved)).toEqual(MATRIX_REPLACED)
  expect(tagOf(saved)).not.toBe(tagOf(before))
  expect(tagOf(await read(idPerfil))).toBe(tagOf(saved))
  const map = await call('GET', `/api/permisos/mis-permisos/${idPerfil}`)
  expect(tagOf(map)).toBe(tagOf(saved))
})

it('a matrix with another version in If-Match is refused, and nothing changes', async () => {
  const idPerfil = await addPerfil()
  const old = tagOf(await read(idPerfil))
  await call('POST', '/api/permisos', { idPerfil, idModulo: 2, bitEditar: true })
  const before = await sql`select * from permisos_perfil`
  const present = tagOf(await read(idPerfil)).slice(1, -1)
  const others = [`${old}, ${UNKNOWN}`, '', present, `"${present}-1"`]
  for (const ifMatch of others) {
    expect(withoutHeaders(await save(idPerfil, [], ifMatch))).toEqual(CHANGED)
  }
  // The version comes before the unknown module and the unknown profile.
  expect(withoutHeaders(await save(idPerfil, [{ idModulo: 999 }], UNKNOWN))).toEqual(CHANGED)
  expect(withoutHeaders(await save(9999, [{ idModulo: 1 }], UNKNOWN))).toEqual(CHANGED)
  expect(await sql`select * from permisos_perfil`).toEqual(before)
})

it('a matrix that the caller may not save is refused with 403, whatever its version is', async () => {
  const [idPerfil, own] = [await addPerfil(), await addPerfil()]
  // The module PERMISOS.
  await save(own, [{ idModulo: 4, bitEditar: true }])
  await call('POST', '/api/usuario', usuario('ana', { idPerfil: own }))
  const token = await first.login('ana', 'una clave')
  const answer = await call(
    'POST',
    '/api/permisos/guardar-matriz',
    { idPerfil, permisos: [{ idModulo: 1, bitEditar: true }] },
    { token, headers: { 'if-match': UNKNOWN } },
  )
  expect(withoutHeaders(answer)).toEqual(FORBIDDEN)
})

it('a matrix is saved without If-Match, with *, and with a list or a weak tag that matches', async () => {
  const idPerfil = await addPerfil()
  for (const ifMatch of [undefined, '*', 'W/TAG', `${UNKNOWN}, TAG`]) {
    const tag = tagOf(await read(idPerfil))
    const answer = await save(idPerfil, [], ifMatch?.replace('TAG', tag))
    expect(withoutHeaders(answer)).toEqual(MATRIX_REPLACED)
  }
})

it('of two saves with the same version, on two replicas, exactly one succeeds in each of 400 rounds', async () => {
  const idPerfil = await addPerfil()
  let tag = tagOf(await read(idPerfil))
  for (let round = 0; round < 400; round += 1) {
    const saves = await Promise.all([
      save(idPerfil, [{ idModulo: 1 }], tag, first),
      save(idPerfil, [{ idModulo: 2 }], tag, second),
    ])
    expect(saves.map(({ status }) => status).sort()).toEqual([200, 412])
    const winner = saves.findIndex(({ status }) => status === 200)
    const last = await read(idPerfil)
    expect(last.body.data).toMatchObject([{ idModulo: 1 + winner }])
    tag = tagOf(last)
    expect(saves[winner]?.headers).toMatchObject({ etag: tag })
  }
})

it('a profile that psql adds with the version of another one gets a version of its own', async () => {
  const [{ isOwn }] = await sql<[{ isOwn: boolean }]>`
    insert into perfil ("strNombrePerfil", "versionPermisos")
    select 'Copia', "versionPermisos" from perfil where id = 1
    returning "versionPermisos" <> (select "versionPermisos" from perfil where id = 1) as "isOwn"
  `
  expect(isOwn).toBe(true)
})

it('a module that is renamed without a search path renews the versions of the profiles with it', async () => {
  const idPerfil = await addPerfil()
  const before = tagOf(await save(idPerfil, [{ idModulo: 1 }]))
  await sql.begin(async (tx) => {
    await tx`set local search_path = ''`
    await tx`update public.modulo set "strNombreModulo" = 'SIN RUTA' where id = 1`
  })
  expect(tagOf(await read(idPerfil))).not.toBe(before)
})

it('a module that is renamed while its record moves renews the version of the new profile', async () => {
  const [from, to] = [await addPerfil(), await addPerfil()]
  await save(from, [{ idModulo: 3 }])
  const move: Step = (tx) =>
    tx`update permisos_perfil set "idPerfil" = ${to} where "idPerfil" = ${from}`
  const rename = async () => sql`update modulo set "strNombreModulo" = 'RENOMBRADO' where id = 3`
  let moved: string | undefined
  await sendDuring(sql, move, rename, {
    meanwhile: async (tx) => {
      const [perfil] = await tx`select "versionPermisos" as version from perfil where id = ${to}`
      moved = perfil?.version
    },
  })
  expect(moved).toEqual(expect.any(String))
  expect(tagOf(await read(to))).not.toContain(moved)
})
