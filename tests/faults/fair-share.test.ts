import { setTimeout as sleep } from 'node:timers/promises'
import type postgres from 'postgres'
import { afterEach, beforeAll, expect, it } from 'vitest'
import type { Answer } from '../answers.js'
import { ADMIN, cloneDatabase } from '../app.js'
import { connectTo } from '../connect.js'
import { usuario } from '../endpoints.js'
import { addUsers, nombreOf } from '../users.js'
import { send } from './client.js'
import { type Service, startService } from './service.js'

const USERS = 20_000
const SECONDS = 8
/** The share of the other users' requests that must be answered. */
const ANSWERED = 0.95
const MIB = 1024 * 1024

let service: Service
let database: postgres.Sql
/** The tokens of the user who floods the service and of another user. */
let attacker: string
let other: string

beforeAll(async () => {
  const url = await cloneDatabase()
  database = connectTo(url)
  service = await startService({ DATABASE_URL: url })
  await addUsers(database, USERS)
  await database`vacuum analyze usuario`
  attacker = await service.login(nombreOf(1))
  other = await service.login(nombreOf(2))
})

/** Ends the loops of the present test. */
let endFlood = () => {}
/** The statuses of the answers to the loops' requests. */
let statuses: Set<number>
afterEach(async () => {
  endFlood()
  await sleep(2000)
})

/** Starts `connections` loops that each send one request after the other until the test ends. */
function flood(connections: number, request: () => Promise<Answer>) {
  let isAttacking = true
  statuses = new Set()
  endFlood = () => {
    isAttacking = false
  }
  for (let client = 0; client < connections; client += 1) {
    void (async () => {
      while (isAttacking) statuses.add((await request()).status)
    })()
  }
}

/** Sends the requests of other users for SECONDS; returns how many were sent and answered. */
async function countOthers() {
  const image = `data:image/png;base64,${'A'.repeat(MIB)}`
  const requests = [
    () =>
      send('POST', `${service.address}/api/auth/login`, {
        body: { ...ADMIN, strNombreUsuario: nombreOf(3), captchaToken: 'humano' },
      }),
    () => send('GET', `${service.address}/api/perfil`, { token: other }),
    () => send('GET', `${service.address}/api/usuario?search=usuario77`, { token: other }),
    // The service reads the whole body and then refuses the invalid email.
    () =>
      send('POST', `${service.address}/api/usuario`, {
        token: other,
        body: { strCorreo: 'x', imagenBase64: image },
      }),
  ]
  const expected = [200, 200, 200, 400]
  let sent = 0
  let answered = 0
  const end = performance.now() + SECONDS * 1000
  while (performance.now() < end) {
    const answers = await Promise.all(requests.map((request) => request()))
    sent += answers.length
    answered += answers.filter(({ status }, index) => status === expected[index]).length
  }
  return { sent, answered }
}

/** Expects that the others are answered while requests of the flood get the answer `status`. */
async function expectOthersAnswered(status: number) {
  const { sent, answered } = await countOthers()
  console.log(`${answered} of ${sent} requests of others were answered`)
  expect(sent).toBeGreaterThan(10)
  expect(answered / sent).toBeGreaterThanOrEqual(ANSWERED)
  expect(statuses).toContain(status)
}

it('answers others while one user searches 20,000 users over 50 connections', async () => {
  const search = encodeURIComponent('á'.repeat(254))
  flood(50, () =>
    send('GET', `${service.address}/api/usuario?search=${search}`, { token: attacker }),
  )
  await expectOthersAnswered(200)
})

it('answers others while a session without rights asks for its own map over 800 connections', async () => {
  const [perfil] = await database<{ id: number }[]>`
    insert into perfil ("strNombrePerfil") values ('sin permisos') returning id`
  await database`
    update usuario set "idPerfil" = ${perfil?.id ?? 0}
    where "strNombreUsuario" = ${nombreOf(4)}`
  const token = await service.login(nombreOf(4))
  const map = `${service.address}/api/permisos/mis-permisos/${perfil?.id}`
  expect(await send('GET', map, { token })).toMatchObject({ status: 200 })
  flood(800, () => send('GET', map, { token }))
  await expectOthersAnswered(200)
})

it('answers others while one user makes the service hash passwords over 300 connections', async () => {
  // The email is taken, so each request hashes a password and adds no user.
  const body = usuario('nuevo', { strCorreo: 'usuario1@ejemplo.com' })
  flood(300, () => send('POST', `${service.address}/api/usuario`, { token: attacker, body }))
  await expectOthersAnswered(500)
})
