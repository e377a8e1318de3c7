import { expect, it } from 'vitest'
import { insertMuestra } from '../src/dev/muestra.js'
import { ADMIN, testApp } from './app.js'
import { DEV_ADMIN, type Example, examplesOf, GIVEN_ALREADY, withNumber } from './examples.js'

/** For each order of the examples, its name and a function that sorts them. */
const ORDERS: [string, (examples: Example[]) => Example[]][] = [
  ['of the document', (examples) => examples],
  ['opposite to the document', (examples) => examples.toReversed()],
  ['with DELETE first', (examples) => byMethod(examples, 'DELETE')],
  ['with PUT first', (examples) => byMethod(examples, 'PUT')],
  ['with POST first', (examples) => byMethod(examples, 'POST')],
]

const byMethod = (examples: Example[], first: string) =>
  examples.toSorted((a, b) => Number(b.method === first) - Number(a.method === first))

it.each(ORDERS)(
  'every example of the document can be sent twice, in the order %s',
  async (_, order) => {
    const { app, sql, config, call, login } = await testApp()
    await call('POST', '/api/usuario', {
      ...DEV_ADMIN,
      strCorreo: 'admin@ejemplo.com',
      idPerfil: 1,
    })
    await insertMuestra(config.DATABASE_URL.url)
    const examples = order(examplesOf((await app.inject('/docs/json')).json()))
    expect(examples).toHaveLength(24)
    const untouched = async () => [
      await sql`
      select id, "strNombreUsuario", "strPwd", "strCorreo", "idPerfil", "idEstadoUsuario"
      from usuario where "strNombreUsuario" in (${ADMIN.strNombreUsuario}, 'admin') order by id
    `,
      await sql`select * from perfil where "bitAdministrador"`,
      await sql`select * from permisos_perfil where "idPerfil" = 1 order by id`,
    ]
    const before = await untouched()
    expect(before.map((rows) => rows.length)).toEqual([2, 1, 4])

    for (const round of [1, 2]) {
      for (const [index, { operationId, method, url, body }] of examples.entries()) {
        // The example of the logout ends the sessions of this user.
        const token = await login(DEV_ADMIN.strNombreUsuario, DEV_ADMIN.strPwd)
        const sent = withNumber(body, 1000 * round + index)
        const answer = await call(method, url, sent, { token })
        const isRepeated = round === 2 && operationId === 'createPermiso'
        const expected = isRepeated ? GIVEN_ALREADY : { status: 200, body: { success: true } }
        expect({ operationId, round, answer }).toMatchObject({
          operationId,
          round,
          answer: expected,
        })
        if (method === 'PUT') expect(answer.body.data).toBeDefined()
      }
    }
    expect(await untouched()).toEqual(before)
  },
)

it('the examples of lists have no filter', async () => {
  const { app } = await testApp()
  const urls = examplesOf((await app.inject('/docs/json')).json())
    .filter(({ operationId }) => operationId.startsWith('list'))
    .map(({ url }) => url)
  expect(urls.toSorted()).toEqual([
    '/api/modulo/list',
    '/api/modulo?page=1',
    '/api/perfil/list',
    '/api/perfil?page=1',
    '/api/permisos/por-perfil/1000000001',
    '/api/permisos?page=1',
    '/api/usuario?page=1',
  ])
})
