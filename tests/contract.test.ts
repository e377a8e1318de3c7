import { createHmac } from 'node:crypto'
import postgres from 'postgres'
import { beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { type Answer, FORBIDDEN, NOT_FOUND, UNAUTHENTICATED, withoutHeaders } from './answers.js'
import { ADMIN, cloneDatabase, JWT_SECRET, testApp } from './app.js'
import { AUTH_ENDPOINTS } from './contract/auth.js'
import { MODULO_ENDPOINTS } from './contract/modulo.js'
import { PERFIL_ENDPOINTS } from './contract/perfil.js'
import { PERMISOS_ENDPOINTS } from './contract/permisos.js'
import { ANA, EVA, MODULOS, PERFILES, PERMISOS, ROOT } from './contract/rows.js'
import { type Change, type Contract, type Json, ok } from './contract/rules.js'
import { USUARIO_ENDPOINTS } from './contract/usuario.js'
import { addressOf, ENDPOINT_NAMES, endpoint } from './endpoints.js'

/** The endpoints that the contract describes. */
const CONTRACT = {
  ...AUTH_ENDPOINTS,
  ...PERMISOS_ENDPOINTS,
  ...PERFIL_ENDPOINTS,
  ...MODULO_ENDPOINTS,
  ...USUARIO_ENDPOINTS,
}

type ContractName = keyof typeof CONTRACT
const CONTRACT_NAMES = Object.keys(CONTRACT) as ContractName[]
const GUARDED = CONTRACT_NAMES.filter((name) => endpoint(name).needs !== 'nothing')
const OTHERS = ENDPOINT_NAMES.filter((name) => !(name in CONTRACT))

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
}

/** Reads all rows of all tables. */
const stored = () => sql`
  select (select jsonb_agg(perfil order by id) from perfil) as perfil,
    (select jsonb_agg(modulo order by id) from modulo) as modulo,
    (select jsonb_agg(permisos_perfil order by id) from permisos_perfil) as permisos,
    (select jsonb_agg(usuario order by id) from usuario) as usuario
`

interface Options {
  token?: string | null
  headers?: Record<string, string>
  through?: Pick<typeof service, 'call'>
}

/** Sends an endpoint's valid request with a change. */
async function send(
  name: ContractName,
  change: Change = {},
  { through = service, ...options }: Options = {},
): Promise<Answer> {
  const { id, body } = contractOf(name)
  const { method, url } = addressOf(name, id)
  const { url: changedUrl = url, fields } = readChange(change)
  const changedBody = body && { ...body, ...fields }
  return withoutHeaders(await through.call(method, changedUrl, changedBody, options))
}

/** Splits a change into the URL, undefined when it stays, and the changed fields of the body. */
function readChange(change: Change): { url?: string; fields: Json } {
  if (typeof change === 'string') return { url: change, fields: {} }
  if (!Array.isArray(change)) return { fields: change }
  const [url, fields] = change
  return { url, fields }
}

/** Sends a text as the body, to the URL of an endpoint's valid request. */
async function sendText(name: ContractName, text: string, headers: object, token?: string | null) {
  const { method, url } = addressOf(name, contractOf(name).id)
  const options = { headers, ...(token !== undefined && { token }) }
  return withoutHeaders(await service.call(method, url, text, options))
}

/** Returns a change as JSON for a title, cut after 90 characters. */
const short = (value: unknown) => {
  const text = JSON.stringify(value, (_, item) => (item === undefined ? 'omitted' : item))
  return text.length > 90 ? `${text.slice(0, 90)}…` : text
}

describe.each(CONTRACT_NAMES)('%s', (name) => {
  const { answer, same = {}, rules } = contractOf(name)

  describe('with status 200,', () => {
    beforeEach(restore)

    const requests = Object.entries({ 'answers the valid request': [{}], ...same })
    const cases = requests.flatMap(([title, changes]) =>
      changes.map((change) => [title, short(change), change] as const),
    )
    it.each(cases)('%s: %s', async (_title, _change, change) => {
      expect(await send(name, change)).toStrictEqual({ status: 200, body: answer })
    })
  })

  if (rules.length === 0) return
  describe('without changing any row,', () => {
    let before: Awaited<ReturnType<typeof stored>>
    let isUnchanged = false
    // A test that succeeds has changed nothing, so the rows are restored only before the first test
    // and after a failure.
    beforeEach(async () => {
      if (!isUnchanged) {
        await restore()
        before = await stored()
      }
      isUnchanged = false
    })

    it.each(rules)('$title', async ({ changes, answer: expected }) => {
      for (const change of changes) {
        expect(await send(name, change), short(change)).toStrictEqual(expected)
      }
      expect(await stored()).toEqual(before)
      isUnchanged = true
    })
  })
})

it.each([
  ['GET', '/api/nada'],
  ['GET', '/api/permisos/1'],
  ['PATCH', '/api/perfil/2'],
] as const)('answers 404 where there is no endpoint: %s %s', async (method, path) => {
  expect(withoutHeaders(await service.call(method, path))).toStrictEqual(NOT_FOUND)
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
    expect(await send('PUT /api/perfil/:id', { strNombrePerfil: text })).toStrictEqual(
      ok({ data: { id: 2, strNombrePerfil: text, bitAdministrador: false } }),
    )
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

  function jwt(changes: object = {}, alg = 'HS256', key = JWT_SECRET) {
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
    const text = `${encode({ alg, typ: 'JWT' })}.${encode({ ...payload, ...changes })}`
    if (alg === 'none') return `${text}.`
    return `${text}.${createHmac(alg.replace('HS', 'sha'), key).update(text).digest('base64url')}`
  }

  /** Returns `token` with the payload of the token `other`. */
  function forged(token: string, other: string) {
    const [header, , signature] = token.split('.')
    const [, payload] = other.split('.')
    return [header, payload, signature].join('.')
  }

  const INVALID: Record<string, string | null> = {
    'no token': null,
    empty: '',
    'no JWT': 'x',
    'forged payload': forged(jwt(), jwt({ id: 2 })),
    unsigned: jwt().replace(/[^.]+$/, ''),
    'alg none': jwt({}, 'none'),
    HS512: jwt({}, 'HS512'),
    'other key': jwt({}, 'HS256', 'otro secreto de pruebas de 32 caracteres'),
    expired: jwt({ exp: now - 1 }),
    'no exp': jwt({ exp: undefined }),
    'no id': jwt({ id: undefined }),
    'user inactive': jwt({ id: 3 }),
    'user gone': jwt({ id: 99 }),
  }
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  it.each(GUARDED)(
    '%s answers 401 to an invalid session before it reads the body',
    async (name) => {
      const before = await stored()
      const got: Record<string, Answer> = {}
      const want: Record<string, Answer> = {}
      for (const [kind, token] of Object.entries(INVALID)) {
        got[`${kind} in the cookie`] = await send(name, {}, { token })
        want[`${kind} in the cookie`] = UNAUTHENTICATED
        if (token === null) continue
        // A header with Bearer takes precedence over the cookie, even if its token is empty.
        const options = { headers: bearer(token), token: jwt() }
        got[`${kind} as Bearer`] = await send(name, {}, options)
        want[`${kind} as Bearer`] = UNAUTHENTICATED
      }
      if (contractOf(name).body) {
        const json = { 'content-type': 'application/json' }
        got.malformed = await sendText(name, '{', json, null)
        got.huge = await sendText(name, 'x'.repeat(2 ** 21), json, null)
        got.text = await sendText(name, 'x', { 'content-type': 'text/plain' }, null)
        Object.assign(want, {
          malformed: UNAUTHENTICATED,
          huge: UNAUTHENTICATED,
          text: UNAUTHENTICATED,
        })
      }
      expect(got).toStrictEqual(want)
      expect(await stored()).toEqual(before)
    },
  )

  it('accepts a valid token as cookie or Bearer, and prefers Bearer', async () => {
    const answer = { status: 200, body: CONTRACT['GET /api/perfil'].answer }
    for (const options of [
      { token: jwt() },
      { token: null, headers: bearer(jwt()) },
      { token: 'x', headers: bearer(jwt()) },
    ])
      expect(await send('GET /api/perfil', {}, options)).toStrictEqual(answer)
  })

  it('does not matter at the login', async () => {
    const answer = { status: 200, body: CONTRACT['POST /api/auth/login'].answer }
    for (const token of [null, 'x', jwt({ id: 99 })])
      expect(await send('POST /api/auth/login', {}, { token })).toStrictEqual(answer)
  })

  it.each(GUARDED)('%s checks its permission, if any, before it reads the body', async (name) => {
    // The token has the id of the administrator's profile, but the profile in the database decides.
    const token = jwt({ id: 2, idPerfil: 1 })
    const before = await stored()
    const { answer, body } = contractOf(name)
    const isOpen = endpoint(name).needs === 'session' || endpoint(name).isOpenToOwner
    const reply = await send(name, {}, { token })
    expect(reply).toStrictEqual(isOpen ? { status: 200, body: answer } : FORBIDDEN)
    if (body) {
      const malformed = await sendText(name, '{', { 'content-type': 'application/json' }, token)
      expect(malformed).toStrictEqual(FORBIDDEN)
    }
    expect(await stored()).toEqual(before)
  })
})

describe('a database that fails', () => {
  let gone: typeof service
  let crippled: typeof service

  beforeAll(async () => {
    const DATABASE_URL = await cloneDatabase()
    gone = await testApp({ DATABASE_URL })
    const server = postgres(inject('serverUrl'), { max: 1 })
    await server.unsafe(`drop database ${new URL(DATABASE_URL).pathname.slice(1)} with (force)`)
    await server.end()

    crippled = await testApp()
    const direct = postgres(crippled.config.DATABASE_URL.url, { max: 1, onnotice: () => {} })
    // Each table becomes a view. The look-up of sessions can read it; every other statement fails.
    await direct.unsafe(`
      create function is_lookup() returns boolean language plpgsql as $$ begin
        if current_query() !~ 'lookup.ver' then
          raise exception 'only look-ups succeed';
        end if;
        return true;
      end $$;
    `)
    for (const table of ['usuario', 'perfil', 'modulo', 'permisos_perfil']) {
      await direct.unsafe(`
        alter table ${table} rename to ${table}_guardada;
        create view ${table} as select * from ${table}_guardada where (select is_lookup());
      `)
    }
    await direct.unsafe(`
      create function has_flag(p_permiso permisos_perfil, p_accion text) returns boolean
      language sql as 'select true'
    `)
    await direct.end()
  })

  it('makes every endpoint answer its unexpected failure when no statement can be sent', async () => {
    const { adminToken: token } = gone
    // Each request waits 2.5 s for a connection, so all are sent at once.
    const contract = CONTRACT_NAMES.map(async (name) => {
      const answer = await send(name, {}, { through: gone, token })
      expect(answer, name).toStrictEqual(endpoint(name).unexpected)
    })
    const others = OTHERS.map(async (name) => {
      const { method, url } = addressOf(name)
      const { body, unexpected } = endpoint(name)
      const answer = await gone.call(method, url, body, { token })
      expect(withoutHeaders(answer), name).toStrictEqual(unexpected)
    })
    await Promise.all([...contract, ...others])
  })

  it.each(CONTRACT_NAMES)(
    'makes %s answer its unexpected failure when its query fails',
    async (name) => {
      const logRead = crippled.readLog().length
      const answer = await send(name, {}, { through: crippled })
      expect(answer).toStrictEqual(endpoint(name).unexpected)
      expect(crippled.readLog().slice(logRead)).toContain('only look-ups succeed')
    },
  )
})
