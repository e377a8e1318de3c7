import { expect, it } from 'vitest'
import { insertMuestra } from '../src/dev/muestra.js'
import { ADMIN, testApp } from './app.js'
import { DEV_ADMIN, type Example, examplesOf, withNumber } from './examples.js'

/** For each order of the examples, its name and a function that sorts them. */
const ORDERS: [string, (examples: Example[]) => Example[]][] = [
  ['of the document', (examples) => examples],
  ['opposite to the document', (examples) => examples.toReversed()],
  ['with DELETE first', (examples) => byMethod(examples, 'DELETE')],
  ['with PUT first', (examples) => byMethod(examples, 'PUT')],
  ['with POST first', (examples) => byMethod(examples, 'POST')],
]

const withoutVersion = ({ versionPermisos, ...rest }: Record<string, unknown>) => rest

const byMethod = (examples: Example[], first: string) =>
  examples.toSorted((a, b) => Number(b.method === first) - Number(a.method === first))

/** Starts the application with the sample data and the administrator of `npm run dev`. */
async function testSample() {
  const service = await testApp()
  const admin = { ...DEV_ADMIN, strCorreo: 'admin@ejemplo.com', idPerfil: 1 }
  await service.call('POST', '/api/usuario', admin)
  await insertMuestra(service.config.DATABASE_URL.url)
  const examples = examplesOf((await service.app.inject('/docs/json')).json())
  return { ...service, examples }
}

it.each(ORDERS)(
  'all examples of the document can be sent one after the other, and then all again, in the order %s',
  async (_, order) => {
    const { sql, call, login, examples } = await testSample()
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

    const newToken = () => login(DEV_ADMIN.strNombreUsuario, DEV_ADMIN.strPwd)
    let token = await newToken()
    for (const round of [1, 2]) {
      for (const [index, { operationId, method, url, body }] of order(examples).entries()) {
        const sent = withNumber(body, 1000 * round + index)
        const answer = await call(method, url, sent, { token })
        expect({ operationId, round, answer }).toMatchObject({
          operationId,
          round,
          answer: { status: 200, body: { success: true } },
        })
        if (method === 'PUT') expect(answer.body.data).toBeDefined()
        // The example of the logout ends the sessions of this user.
        if (operationId === 'logout') token = await newToken()
      }
    }
    expect(await untouched()).toEqual(before)
  },
)

it('the examples of updates and of the matrix leave the sample data as it was', async () => {
  const { sql, call, examples } = await testSample()
  const sample = async () => [
    await sql`select * from perfil order by id`.then((rows) => rows.map(withoutVersion)),
    await sql`select * from modulo order by id`,
    await sql`select * from usuario order by id`,
    // A matrix that is saved again gets new ids.
    await sql`
      select "idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar", "bitDetalle"
      from permisos_perfil order by "idPerfil", "idModulo"
    `,
  ]
  const before = await sample()
  const writes = examples.filter(({ method, operationId }) => {
    return method === 'PUT' || operationId === 'guardarMatriz'
  })
  expect(writes).toHaveLength(5)
  for (const { operationId, method, url, body } of writes) {
    const { status } = await call(method, url, body)
    expect({ operationId, status }).toEqual({ operationId, status: 200 })
  }
  expect(await sample()).toEqual(before)
})

it('on a database without the sample data, the examples leave every row that existed before unchanged', async () => {
  const { app, sql, call } = await testApp()
  const examples = examplesOf((await app.inject('/docs/json')).json())
  const rows = async () => [
    await sql`select * from perfil where id <= 1`,
    await sql`select * from modulo where id <= 4`,
    await sql`select * from permisos_perfil order by id`,
    await sql`select * from usuario where id <= 1`,
  ]
  const before = await rows()
  for (const [index, { operationId, method, url, body }] of examples.entries()) {
    if (operationId === 'logout') continue
    await call(method, url, withNumber(body, index))
  }
  expect(await rows()).toEqual(before)
})

it('the sample has two profiles besides the administrator’s, and twelve modules besides the system’s', async () => {
  const { sql } = await testSample()
  const [count] = await sql`
    select (select count(*)::int from perfil where not "bitAdministrador") as perfiles,
      (select count(*)::int from modulo where id > 4) as modulos
  `
  expect(count).toEqual({ perfiles: 2, modulos: 12 })
})

it('a new row is the first one of its list, although the sample has high ids', async () => {
  const { call, examples } = await testSample()
  for (const name of ['perfil', 'modulo', 'usuario']) {
    const create = examples.find(({ method, url }) => method === 'POST' && url === `/api/${name}`)
    const created = await call('POST', `/api/${name}`, withNumber(create?.body, 1))
    const { body } = await call('GET', `/api/${name}`)
    expect(body.data[0].id).toBe(created.body.data.id)
  }
})

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
    '/api/permisos/por-perfil/1000000002',
    '/api/permisos?page=1',
    '/api/usuario?page=1',
  ])
})
