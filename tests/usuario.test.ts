import { compareSync } from 'bcryptjs'
import { describe, expect, it } from 'vitest'
import { DELETED, statusCodeAnswer, withoutHeaders } from './answers.js'
import { testApp } from './app.js'
import { type Method, usuario } from './endpoints.js'
import { countWaiting } from './hold.js'

const { call, config, login, readLog, sql } = await testApp()

const HASH = /^\$2[aby]\$10\$/

/** Sends a request to `/api/usuario`; `path` is an id, a query with its `?`, or empty. */
async function send(method: Method, path: string | number, body?: object, through = { call }) {
  const end = path === '' || String(path).startsWith('?') ? path : `/${path}`
  return withoutHeaders(await through.call(method, `/api/usuario${end}`, body))
}

const create = async (name: string, more: object = {}, through = { call }) =>
  (await send('POST', '', usuario(name, more), through)).body.data
const insertPerfil = async (name: string): Promise<number> =>
  (await call('POST', '/api/perfil', { strNombrePerfil: name })).body.data.id
const stored = async (id: number) => {
  const [user] = await sql`
    select id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
      "idEstadoUsuario", "imagenUrl"
    from usuario where id = ${id}
  `
  return user
}

describe('the password', async () => {
  const real = await testApp({ DATABASE_URL: config.DATABASE_URL.url }, { cheapHashes: false })

  it('is stored as a bcrypt hash of 10 rounds, which the answer contains', async () => {
    const data = await create('pwd1', {}, real)
    expect(data.strPwd).toMatch(HASH)
    expect(compareSync('una clave', data.strPwd)).toBe(true)
    expect(await stored(data.id)).toEqual(data)
    expect((await create('pwd2', {}, real)).strPwd).not.toBe(data.strPwd)
  })

  it('is changed by an update with a password and by its owner, and kept by an update without', async () => {
    const { id, strPwd: hash } = await create('pwd3', {}, real)
    const update = async (strPwd?: unknown) =>
      (await send('PUT', id, usuario('pwd3', { strPwd }), real)).body.data
    for (const none of [undefined, null, '']) expect((await update(none)).strPwd).toBe(hash)
    const data = await update('nueva')
    expect(data.strPwd).toMatch(HASH)
    expect(compareSync('nueva', data.strPwd)).toBe(true)
    expect(await stored(id)).toEqual(data)

    const token = await login('pwd3', 'nueva')
    const own = { strPwd: 'nueva', strPwdNueva: 'propia' }
    expect((await real.call('PUT', '/api/auth/password', own, { token })).status).toBe(200)
    expect((await stored(id))?.strPwd).toMatch(HASH)
  })
})

it.each([
  ['POST', { strNombreUsuario: 'nueva' }],
  ['PUT', { strNombreUsuario: 'renombrada' }],
  ['PUT', { strCorreo: 'nuevo@ejemplo.com' }],
] as const)(
  'writes a new name or email under the lock of names and emails: %s with %j',
  async (method, changes) => {
    const previa = `previa${method}${Object.keys(changes)}`
    const path = method === 'POST' ? '' : (await create(previa)).id
    let written: ReturnType<typeof send> | undefined
    await sql.begin(async (tx) => {
      // The lock of names and emails (prepare_usuario in sql/migrations/0008_auditoria.sql).
      await tx`select pg_advisory_xact_lock(7305511407)`
      written = send(method, path, usuario(previa, changes))
      await expect.poll(() => countWaiting(sql)).toBe(1)
    })
    expect((await written)?.body.data).toMatchObject(changes)
  },
)

it('overwrites every field but the password and the image, of one user only', async () => {
  const other = await create('otro')
  const ana = await create('ana', { strNumeroCelular: '555 0101' })
  await sql`update usuario set "imagenUrl" = 'https://x.es/x.png' where id = ${ana.id}`
  const changes = {
    strNombreUsuario: 'Ana',
    strCorreo: 'otra@ejemplo.com',
    idEstadoUsuario: false,
    idPerfil: await insertPerfil('nuevo'),
  }
  const data = { ...ana, ...changes, strNumeroCelular: null, imagenUrl: 'https://x.es/x.png' }
  expect(await send('PUT', ana.id, changes)).toEqual({ status: 200, body: { success: true, data } })
  expect(await stored(ana.id)).toEqual(data)
  expect(await stored(other.id)).toEqual(other)
})

describe('GET /api/usuario', async () => {
  const idPerfil = await insertPerfil('de las listas')
  const list = async (query: string) => (await send('GET', `?${query}`)).body
  const namesOf = (rows: { strNombreUsuario: string }[]) =>
    rows.map(({ strNombreUsuario }) => strNombreUsuario)

  it('returns pages in descending order of ids, filtered by name or email, profile and state', async () => {
    await create('Ñandú', { idPerfil })
    await create('otra_más', { idPerfil, strCorreo: 'ñandú@x.es' })
    for (const name of ['c', 'd', 'e']) await create(name, { idPerfil })
    await create('inactiva', { idPerfil, idEstadoUsuario: false })
    const ALL = ['inactiva', 'e', 'd', 'c', 'otra_más', 'Ñandú']
    for (const [query, expected] of [
      ['', ALL.slice(0, 5)],
      ['page=2', ALL.slice(5)],
      ['estado=&search=&page=', ALL.slice(0, 5)],
      [`search=${encodeURIComponent('ñANDÚ')}`, ['otra_más', 'Ñandú']],
      ['search=_', ['otra_más']],
      ['estado=false', ['inactiva']],
    ] as const) {
      const { data } = await list(`idPerfil=${idPerfil}&${query}`)
      expect({ query, names: namesOf(data) }).toEqual({ query, names: expected })
    }
    expect((await list(`idPerfil=${idPerfil}`)).totalPages).toBe(2)
    expect((await list('idPerfil=')).data.length).toBe(5)
    const unknown = await list('idPerfil=99999999999')
    expect(unknown).toEqual({ success: true, data: [], totalPages: 0 })
  })

  it('returns a user with the profile’s name and without the hash, or 404', async () => {
    const { strPwd: _, ...user } = await create('vista', { idPerfil, strNumeroCelular: '5' })
    const data = { ...user, nombrePerfil: 'de las listas' }
    expect(await send('GET', user.id)).toEqual({ status: 200, body: { success: true, data } })
    expect((await list('search=vista')).data).toEqual([data])
    expect(await send('GET', '999999')).toEqual(statusCodeAnswer(404, 'Usuario no encontrado'))
  })

  it.each([
    ['?idPerfil=x', 'El campo idPerfil debe ser un número entero distinto de 0'],
    ['?estado=si', 'El campo estado debe ser true o false'],
    [`?search=${'x'.repeat(256)}`, 'El campo search no puede superar los 255 caracteres'],
    ['?page=0', 'El campo page debe ser un entero mayor o igual a 1'],
    ['0', 'ID de usuario inválido'],
  ])('answers 400 to %s', async (path, message) => {
    expect(await send('GET', path)).toEqual(statusCodeAnswer(400, message))
  })
})

it('DELETE /api/usuario/:id gives the same answer when repeated, and 409 for the own user', async () => {
  const { id } = await create('borrada')
  expect(await send('DELETE', id)).toEqual(DELETED)
  expect(await send('DELETE', id)).toEqual(DELETED)
  expect(await send('GET', id)).toMatchObject({ status: 404 })
  expect(await send('DELETE', '0')).toEqual(statusCodeAnswer(400, 'ID de usuario inválido'))
  expect(await send('DELETE', '1')).toEqual(
    statusCodeAnswer(409, 'No puede eliminar su propio usuario'),
  )
})

describe('writes that change a phone number at the same time', () => {
  /** Updates a user's phone number and leaves the other fields unchanged. */
  const phone = (user: { id: number }, strNumeroCelular: string, token?: string) =>
    call(
      'PUT',
      `/api/usuario/${user.id}`,
      { ...user, strPwd: undefined, strNumeroCelular },
      token === undefined ? {} : { token },
    )

  it('do not wait for each other when they change different users', async () => {
    const cerrado = await create('cerrado')
    const abierto = await create('abierto')
    let waiting: Promise<unknown> | undefined
    await sql.begin(async (tx) => {
      await tx`select from usuario where id = ${cerrado.id} for update`
      waiting = phone(cerrado, '1')
      await expect.poll(() => countWaiting(sql)).toBe(1)
      expect(await phone(abierto, '2')).toMatchObject({ status: 200 })
    })
    expect(await waiting).toMatchObject({ status: 200 })
  })

  it('do not deadlock when two users edit each other', async () => {
    const ida = await create('ida')
    const vuelta = await create('vuelta')
    const tokens = [await login('ida', 'una clave'), await login('vuelta', 'una clave')]
    for (let round = 0; round < 30; round += 1) {
      const answers = await Promise.all([
        phone(vuelta, `${round}`, tokens[0]),
        phone(ida, `${round}`, tokens[1]),
      ])
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
    }
    expect(readLog()).not.toContain('40P01')
  })
})
