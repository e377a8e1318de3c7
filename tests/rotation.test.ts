import { expect, it } from 'vitest'
import { ADMIN, cloneDatabase, testApp } from './app.js'

const OLD = 'el secreto que se va, de mas de 32 caracteres'
const NEW = 'el secreto que llega, de mas de 32 caracteres'

// The three states of a replica while the secret is exchanged.
const DATABASE_URL = await cloneDatabase()
const before = await testApp({ DATABASE_URL, JWT_SECRET: OLD, JWT_SECRET_PREVIOUS: NEW })
const during = await testApp({ DATABASE_URL, JWT_SECRET: NEW, JWT_SECRET_PREVIOUS: OLD })
const after = await testApp({ DATABASE_URL, JWT_SECRET: NEW })

const statusOf = async (replica: typeof before, token: string) =>
  (await replica.call('GET', '/api/perfil', undefined, { token })).status

it('nobody is logged out while replicas sign with either secret', async () => {
  for (const issuer of [before, during]) {
    const token = await issuer.login(ADMIN.strNombreUsuario, ADMIN.strPwd)
    expect(await statusOf(before, token)).toBe(200)
    expect(await statusOf(during, token)).toBe(200)
  }
})

it('the previous secret signs nothing', async () => {
  const token = await during.login(ADMIN.strNombreUsuario, ADMIN.strPwd)
  expect(await statusOf(after, token)).toBe(200)
})

it('a token of a secret that is gone is none', async () => {
  const token = await before.login(ADMIN.strNombreUsuario, ADMIN.strPwd)
  expect(await statusOf(after, token)).toBe(401)
})

it('what the previous secret checks is checked as strictly', async () => {
  const { exp: _, ...claims } = before.app.jwt.decode<{ exp: number }>(before.adminToken) ?? {}
  const sign = (claims: object, options?: object) =>
    before.app.jwt.sign(claims as never, options as never)
  const expired = { ...claims, iat: 1, exp: 2 }
  expect(await statusOf(during, sign(claims))).toBe(200)
  expect(await statusOf(during, sign(expired))).toBe(401)
  expect(await statusOf(during, sign(claims, { algorithm: 'HS512' }))).toBe(401)
})
