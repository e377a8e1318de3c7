import { describe, expect, it } from 'vitest'
import { testApp } from './app.js'
import { usuario } from './endpoints.js'
import { type Step, sendDuring } from './hold.js'

const { call, config, login, sql } = await testApp()

const HASH = /^\$2[aby]\$10\$/

const create = async (name: string, more: object = {}, through = { call }) =>
  (await through.call('POST', '/api/usuario', usuario(name, more))).body.data
const storedHash = async (id: number) => {
  const [user] = await sql`select "strPwd" from usuario where id = ${id}`
  return user?.strPwd
}

describe('the password', async () => {
  const real = await testApp({ DATABASE_URL: config.DATABASE_URL.url }, { cheapHashes: false })

  it('is stored as a bcrypt hash of 10 rounds, which the answer contains', async () => {
    const data = await create('pwd1', {}, real)
    expect(data.strPwd).toMatch(HASH)
    expect(await storedHash(data.id)).toBe(data.strPwd)
  })

  it('is stored as such a hash, too, when an update or its owner changes it', async () => {
    const { id } = await create('pwd3', {}, real)
    const changed = usuario('pwd3', { strPwd: 'nueva' })
    const { data } = (await real.call('PUT', `/api/usuario/${id}`, changed)).body
    expect(data.strPwd).toMatch(HASH)
    expect(await storedHash(id)).toBe(data.strPwd)

    const token = await login('pwd3', 'nueva')
    const own = { strPwd: 'nueva', strPwdNueva: 'propia' }
    expect((await real.call('PUT', '/api/auth/password', own, { token })).status).toBe(200)
    expect(await storedHash(id)).toMatch(HASH)
  })
})

it('the index of the emails refuses a write with psql, too', async () => {
  const row = usuario('otra', { strCorreo: 'RAIZ@EJEMPLO.COM' })
  const constraint_name = 'usuario_correo_unico'
  await expect(sql`insert into usuario ${sql(row)}`).rejects.toMatchObject({ constraint_name })
})

it.each([
  ['POST', { strNombreUsuario: 'nueva' }],
  ['PUT', { strNombreUsuario: 'renombrada' }],
  ['PUT', { strCorreo: 'nuevo@ejemplo.com' }],
] as const)(
  'writes a new name or email under the lock of names and emails: %s with %j',
  async (method, changes) => {
    const previa = `previa${method}${Object.keys(changes)}`
    const end = method === 'POST' ? '' : `/${(await create(previa)).id}`
    // The lock of names and emails (prepare_usuario in sql/migrations/0008_auditoria.sql).
    const lock: Step = (tx) => tx`select pg_advisory_xact_lock(7305511407)`
    const write = () => call(method, `/api/usuario${end}`, usuario(previa, changes))
    expect((await sendDuring(sql, lock, write)).body.data).toMatchObject(changes)
  },
)

it('a write does not wait for a write of another user', async () => {
  const cerrado = await create('cerrado')
  const abierto = await create('abierto')
  const changePhone = (user: { id: number }) => {
    const changes = { ...user, strPwd: undefined, strNumeroCelular: '1' }
    return call('PUT', `/api/usuario/${user.id}`, changes)
  }
  const lock: Step = (tx) => tx`select from usuario where id = ${cerrado.id} for update`
  const waiting = await sendDuring(sql, lock, () => changePhone(cerrado), {
    meanwhile: async () => expect(await changePhone(abierto)).toMatchObject({ status: 200 }),
  })
  expect(waiting).toMatchObject({ status: 200 })
})
