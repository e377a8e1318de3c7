import { isDeepStrictEqual } from 'node:util'
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Answer, FORBIDDEN, NOT_FOUND, UNAUTHENTICATED, withoutHeaders } from './answers.js'
import { ADMIN, testApp } from './app.js'
import { AUTH_ENDPOINTS } from './contract/auth.js'
import { MODULO_ENDPOINTS } from './contract/modulo.js'
import { PERFIL_ENDPOINTS } from './contract/perfil.js'
import { PERMISOS_ENDPOINTS } from './contract/permisos.js'
import { ANA, EVA, MODULOS, PERFILES, PERMISOS, ROOT } from './contract/rows.js'
import { type Change, type Contract, type Json, ok } from './contract/rules.js'
import { USUARIO_ENDPOINTS } from './contract/usuario.js'
import { addressOf, ENDPOINT_NAMES, type EndpointName, endpoint } from './endpoints.js'
import { insertPermiso, readTables, TABLES } from './tables.js'
import { sign } from './token.js'

/** The endpoints that the contract describes, and others whose rules fit in the same tables. */
const CONTRACT = {
  ...AUTH_ENDPOINTS,
  ...PERMISOS_ENDPOINTS,
  ...PERFIL_ENDPOINTS,
  ...MODULO_ENDPOINTS,
  ...USUARIO_ENDPOINTS,
}

type ContractName = keyof typeof CONTRACT
const CONTRACT_NAMES = Object.keys(CONTRACT) as ContractName[]

const contractOf = (name: ContractName): Contract => CONTRACT[name]

const service = await testApp()
const { sql } = service
const strPwd = await service.passwords.hash(ADMIN.strPwd)

/** Replaces all rows by those that every test starts from. */
async function restore() {
  const rows = (records: { id: number }[]) =>
    sql(records.map(({ id: _, ...row }) => row as Record<string, string>))
  await sql`truncate perfil, modulo, permisos_perfil, usuario restart identity`
  await sql`insert into perfil ${rows(PERFILES)}`
  await sql`insert into modulo ${rows(MODULOS)}`
  await sql`insert into permisos_perfil ${rows(PERMISOS)}`
  await sql`insert into usuario ${rows([ROOT, ANA, EVA].map((user) => ({ ...user, strPwd })))}`
  // Each of these rows moves to the end of its table, so a list without an order is not in that of
  // the ids.
  await sql`update perfil set "strNombrePerfil" = "strNombrePerfil" where id = 1`
  await sql`update modulo set "strNombreModulo" = "strNombreModulo" where id = 1`
  await sql`update permisos_perfil set "bitAgregar" = "bitAgregar" where id = 1`
}

/** Reads all rows of the tables, and how many rows the audit has. */
const readAll = async () => [await readTables(sql), await sql`select count(*) from auditoria`]

/** Sends an endpoint's valid request with a change. */
async function send(
  name: ContractName,
  change: Change = {},
  options: Parameters<typeof service.call>[3] = {},
): Promise<Answer> {
  const { id, body } = contractOf(name)
  const { method, url } = addressOf(name, id)
  const { url: changedUrl = url, fields } = readChange(change)
  const changedBody = body && { ...body, ...fields }
  return withoutHeaders(await service.call(method, changedUrl, changedBody, options))
}

/** Splits a change into the URL, undefined when it stays, and the changed fields of the body. */
function readChange(change: Change): { url?: string; fields: Json } {
  if (typeof change === 'string') return { url: change, fields: {} }
  if (!Array.isArray(change)) return { fields: change }
  const [url, fields] = change
  return { url, fields }
}

/** Returns a change that adds what the endpoint does not know to its valid request. */
const withUnknown = (name: ContractName): Change => {
  const { id, body } = contractOf(name)
  return body ? { id: 99, sobra: 1 } : `${addressOf(name, id).url}?sobra=1`
}

/** Returns a change as JSON for a title, cut after 90 characters. */
const short = (value: unknown) => {
  const text = JSON.stringify(value, (_, item) => (item === undefined ? 'omitted' : item))
  return text.length > 90 ? `${text.slice(0, 90)}…` : text
}

type Tables = Awaited<ReturnType<typeof readTables>>

/** Returns the ids of the rows that are not the same in both, for each table that has such rows. */
function changedIds(before: Tables, after: Tables) {
  const entries = TABLES.map((table) => {
    const rows = [...before[table], ...after[table]]
    const isAlone = (row: object) => rows.filter((one) => isDeepStrictEqual(one, row)).length === 1
    return [table, [...new Set(rows.filter(isAlone).map(({ id }) => id))]] as const
  })
  return Object.fromEntries(entries.filter(([, ids]) => ids.length > 0))
}

describe.each(CONTRACT_NAMES)('%s', (name) => {
  const { answer, same = {}, writes = {}, rules } = contractOf(name)

  beforeAll(restore)

  const titled = rules.map((rule) => [rule.title, rule] as const)
  it.each(titled)('%s, and changes no row', async (_title, { changes, answer: expected }) => {
    const before = await readAll()
    const logged = service.readLog().length
    for (const change of changes) {
      expect(await send(name, change), short(change)).toStrictEqual(expected)
    }
    expect(await readAll()).toEqual(before)
    expect(service.readLog().slice(logged)).not.toContain('unexpected failure')
  })

  const requests = Object.entries({
    'answers the valid request': [{}],
    'ignores unknown fields and parameters': [withUnknown(name)],
    ...same,
  })
  const cases = requests.flatMap(([title, changes]) =>
    changes.map((change) => [title, short(change), change] as const),
  )
  it.each(cases)('%s: %s', async (_title, _change, change) => {
    await restore()
    const before = await readTables(sql)
    expect(await send(name, change)).toStrictEqual({ status: 200, body: answer })
    const after = await readTables(sql)
    expect(changedIds(before, after)).toEqual(writes)
    // The record in the answer is stored.
    if (!name.startsWith('GET') && answer.data) {
      expect(Object.values(after).flat()).toContainEqual(expect.objectContaining(answer.data))
    }
  })
})

it.each([
  ['POST', '/api/nada'],
  ['PATCH', '/api/perfil/2'],
] as const)('answers 404 where there is no endpoint: %s %s', async (method, path) => {
  // The body is neither read nor parsed.
  const answer = await service.call(method, path, '{')
  expect(withoutHeaders(answer)).toStrictEqual(NOT_FOUND)
})

const EMAILS = ['a@b.cc', 'ana.b+c@x-y.ejemplo.com', 'ñu@ñandú.es', "o'brien@1.es"]

describe('texts', () => {
  beforeEach(restore)

  it('accepts every kind of email address', async () => {
    for (const strCorreo of [...EMAILS, `${'a'.repeat(250)}@x.es`]) {
      expect((await send('PUT /api/usuario/:id', { strCorreo })).body).toMatchObject({
        data: { strCorreo },
      })
    }
  })

  it('stores texts of 255 characters unchanged, however many bytes they have', async () => {
    const text = '🗝'.repeat(255)
    const words = { strNombreUsuario: text, strNumeroCelular: text }
    expect(await send('POST /api/modulo', { strNombreModulo: text })).toStrictEqual(
      ok({ data: { id: 7, strNombreModulo: text } }),
    )
    expect((await send('POST /api/usuario', words)).body).toMatchObject({ data: words })
  })
})

describe('the session', () => {
  beforeAll(restore)

  const now = Math.floor(Date.now() / 1000)
  const payload = { id: 1, idPerfil: 1, nombre: ADMIN.strNombreUsuario, iat: now, exp: now + 3600 }
  const jwt = (changes: object = {}, ...how: [alg?: string, key?: string]) =>
    sign({ ...payload, ...changes }, ...how)

  const [header, , signature] = jwt().split('.')
  const [, payloadOfAna] = jwt({ id: 2 }).split('.')
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  it.each([
    ['is empty', ''],
    ['is no JWT', 'x'],
    ['has a forged payload', `${header}.${payloadOfAna}.${signature}`],
    ['has alg none', jwt({}, 'none')],
    ['is signed with HS512', jwt({}, 'HS512')],
    ['is signed with another key', jwt({}, 'HS256', 'otro secreto de pruebas de 32 caracteres')],
    ['has expired', jwt({ exp: now - 1 })],
    ['has no exp', jwt({ exp: undefined })],
    ['has an id beyond the integers', jwt({ id: 2 ** 31 })],
    ['has an id with a fraction', jwt({ id: 1.5 })],
    ['has an id that is a text', jwt({ id: '1' })],
    ['has a version beyond the integers', jwt({ ver: 2 ** 31 })],
    ['is of an inactive user', jwt({ id: 3 })],
    ['is of a user who is gone', jwt({ id: 99 })],
  ])('is refused with 401 when its token %s, in the cookie or as Bearer', async (_, token) => {
    expect(await send('GET /api/perfil', {}, { token })).toStrictEqual(UNAUTHENTICATED)
    // A header with Bearer takes precedence over the cookie, even if its token is empty.
    const options = { token: jwt(), headers: bearer(token) }
    expect(await send('GET /api/perfil', {}, options)).toStrictEqual(UNAUTHENTICATED)
  })

  it('is accepted with a valid token as Bearer, which takes precedence over the cookie', async () => {
    const options = { token: 'x', headers: bearer(jwt()) }
    expect(await send('GET /api/perfil', {}, options)).toMatchObject({ status: 200 })
  })

  it('does not matter at the login', async () => {
    expect(await send('POST /api/auth/login', {}, { token: 'x' })).toMatchObject({ status: 200 })
  })

  it('has the permissions of the user’s profile, and not of the one in the token', async () => {
    const token = jwt({ id: 2, idPerfil: 1 })
    expect(await send('GET /api/perfil', {}, { token })).toStrictEqual(FORBIDDEN)
    // Only the map of one's own profile needs no permission.
    const readMap = (id: number) =>
      send('GET /api/permisos/mis-permisos/:idPerfil', `/api/permisos/mis-permisos/${id}`, {
        token,
      })
    expect(await readMap(2)).toMatchObject({ status: 200 })
    expect(await readMap(1)).toStrictEqual(FORBIDDEN)
    // The module PERMISOS has the id 4.
    onTestFinished(restore)
    await insertPermiso(sql, 2, 4, 'bitConsulta')
    expect(await readMap(1)).toMatchObject({ status: 200 })
  })

  it('and its permission are checked before the body is read', async () => {
    const put = async (token: string | null) => {
      const headers = { 'content-type': 'application/json' }
      return withoutHeaders(await service.call('PUT', '/api/perfil/2', '{', { token, headers }))
    }
    expect(await put(null)).toStrictEqual(UNAUTHENTICATED)
    expect(await put(jwt({ id: 2 }))).toStrictEqual(FORBIDDEN)
  })
})

describe('a database that fails', () => {
  const expectUnexpected = async ({ call }: typeof service, name: EndpointName, query = '') => {
    const { method, url } = addressOf(name)
    const { body, unexpected } = endpoint(name)
    expect(withoutHeaders(await call(method, url + query, body)), name).toStrictEqual(unexpected)
  }

  it('makes every endpoint answer its unexpected failure when it cannot be reached', async () => {
    const gone = await testApp({ DATABASE_URL: 'postgres://127.0.0.1:1/nada' })
    // Each request waits 2.5 s for a connection, so all are sent at once.
    await Promise.all(ENDPOINT_NAMES.map((name) => expectUnexpected(gone, name)))
  })

  it('makes an endpoint answer its unexpected failure when the query fails', async () => {
    const broken = await testApp()
    // Every write, every search and the detail of a user call one of these functions.
    for (const name of ['begin_write', 'fold_case', 'needs_for']) {
      await broken.sql`alter function ${sql(name)} rename to ${sql(`${name}_de_antes`)}`
    }
    const names = ENDPOINT_NAMES.filter(
      (name) => endpoint(name).needs.includes(' ') && !name.startsWith('GET /api/permisos'),
    )
    for (const name of names) await expectUnexpected(broken, name, '?search=x')
  })
})
