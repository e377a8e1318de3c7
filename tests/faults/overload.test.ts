import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { BUSY } from '../answers.js'
import { cloneDatabase } from '../app.js'
import { authorization, readGrupo, seedGrupos, type Usuario } from '../bench/data.js'
import type { Load, LoadRequest } from '../bench/load.js'
import { p99, residentMb } from '../bench/measure.js'
import {
  type Generator,
  SERVERS,
  type Server,
  startGenerator,
  startServer,
} from '../bench/processes.js'
import { during } from '../during.js'
import { SECRETS } from '../service.js'

const SECONDS = Number(process.env.OVERLOAD_SECONDS ?? 60)
/** The clients of a busy service; each sends its next request after the answer to the last. */
const CLIENTS = 200
/** Ten times as many clients, all of which ignore `Retry-After`. */
const TOO_MANY = 10 * CLIENTS
/** The bounds of this test, in milliseconds and MB, and the requests/s for which they hold. */
const LATENCY = 5000
const HEALTH_LATENCY = 1000
const MEMORY = 400
/** How long others may wait while a few connections cost much time, in milliseconds. */
const OTHERS_LATENCY = 2000
const STATED_CAPACITY = 1000
const REFUSED = { ...BUSY, retryAfter: '5' }

let folder: string
let service: Server
let generator: Generator
let requests: LoadRequest[]
/** The headers of each administrator; one user's statements wait for each other. */
let sessions: Record<string, string>[]

beforeAll(async () => {
  const url = await cloneDatabase()
  await seedGrupos(url, [
    { nombre: 'lector', perfiles: CLIENTS },
    { nombre: 'administrador', perfiles: CLIENTS, administrador: true, conPermisos: false },
  ])
  sessions = (await readGrupo(url, 'administrador')).map(authorization)
  requests = mixed(await readGrupo(url, 'lector'))
  folder = await mkdtemp(join(tmpdir(), 'llavero-overload-'))
  const env = { ...SECRETS, DATABASE_URL: url, LOG_LEVEL: 'warn' }
  service = await startServer(SERVERS.service, env, folder)
  generator = startGenerator()
})
afterAll(async () => {
  await generator?.stop()
  await service?.stop()
  await rm(folder, { recursive: true, force: true })
})

const sessionOf = (index: number) => sessions[index % sessions.length] ?? {}

/** Returns a request for each client: maps, lists and writes in turn. */
function mixed(lectores: Usuario[]) {
  const each = lectores.flatMap((lector, index): LoadRequest[] => {
    const headers = sessionOf(index)
    return [
      {
        path: `/api/permisos/mis-permisos/${lector.idPerfil}`,
        headers: authorization(lector),
      },
      { path: `/api/permisos?page=${index + 1}`, headers },
      { path: `/api/modulo?search=${index}`, headers },
      {
        method: 'POST',
        path: '/api/permisos/guardar-matriz',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ idPerfil: index + 1, permisos: [{ idModulo: 1 }] }),
      },
    ]
  })
  return Array.from({ length: TOO_MANY }, (_, index) => each[index % each.length] as LoadRequest)
}

const flood = (connections: number, seconds: number, mayShed = false) =>
  generator.run({ url: service.url, requests, connections, seconds, mayShed })

async function get(path: string) {
  const begin = performance.now()
  const answer = await fetch(service.url + path, { headers: sessionOf(-1 + sessions.length) })
  const body = await answer.json()
  const ms = performance.now() - begin
  return { status: answer.status, retryAfter: answer.headers.get('retry-after'), body, ms }
}

const rate = ({ seconds }: Load, count: number) => Math.round(count / seconds)

it('the service stays within its bounds under ten times its load, and refuses requests only with 503', async () => {
  await flood(CLIENTS, 2)
  const memoryBefore = residentMb(service.pid)
  const usual = await flood(CLIENTS, 3)
  const capacity = rate(usual, usual.answered)

  const load = flood(TOO_MANY, SECONDS, true)
  const [over, live, lists] = await Promise.all([
    load,
    during(load, () => get('/health/live')),
    during(load, () => get('/api/perfil/list')),
  ])
  const memoryAfter = residentMb(service.pid)
  console.log(
    `capacity ${capacity}/s with a p99 of ${Math.round(p99(usual.times))} ms; then ` +
      `${rate(over, over.answered)}/s accepted with ${Math.round(p99(over.times))} ms, ` +
      `${rate(over, over.shed)}/s shed; /health/live within ` +
      `${Math.round(Math.max(...live.map(({ ms }) => ms)))} ms; ` +
      `${Math.round(memoryBefore)} MB before, ${Math.round(memoryAfter)} after`,
  )

  expect(over.answered / over.seconds).toBeGreaterThan(capacity / 2)
  // A slower machine takes longer for the requests in flight.
  const slowness = Math.max(1, STATED_CAPACITY / capacity)
  expect(p99(over.times)).toBeLessThan(LATENCY * slowness)
  for (const refused of lists.filter(({ status }) => status !== 200)) {
    expect(refused).toEqual({ ...REFUSED, ms: expect.any(Number) })
  }
  const late = live.filter(({ status, ms }) => status !== 200 || ms > HEALTH_LATENCY * slowness)
  expect(late).toEqual([])
  expect(memoryAfter).toBeLessThan(MEMORY)
  expect(await get('/api/perfil/list')).toMatchObject({ status: 200 })
  await flood(CLIENTS, 2)
})

it('others are answered while strangers send bodies in chunks of one byte', async () => {
  const head =
    'POST /api/usuario HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
    'Transfer-Encoding: chunked\r\n\r\n'
  // The body waits until this request has been answered.
  const earlier = 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n'
  const { port } = new URL(service.url)
  const clients = Array.from({ length: 16 }, () => connect(Number(port), '127.0.0.1'))
  // An image may have more bytes than each client sends.
  const chunks = '1\r\n \r\n'.repeat(1_000_000)
  for (const client of clients) {
    client.on('error', () => {}).write(`${earlier}${head}${chunks}`)
  }
  const answers = await during(sleep(2000), () => get('/api/perfil/list'))

  expect(clients.filter(({ destroyed }) => !destroyed)).toEqual([])
  expect(answers.filter(({ status, ms }) => status !== 200 || ms > OTHERS_LATENCY)).toEqual([])
})

it('others are answered while strangers have 8 large requests in line on each connection', async () => {
  const headers = Array.from({ length: 190 }, (_, index) => `${index}:${'0'.repeat(50)}`)
  const request = `GET /api/usuario HTTP/1.1\r\nhost: x\r\n${headers.join('\r\n')}\r\n\r\n`
  const { port } = new URL(service.url)
  let refused = 0
  const clients = Array.from({ length: 16 }, () => {
    const client = connect(Number(port), '127.0.0.1')
    client.write(request.repeat(8))
    // For each answer, the client sends another request.
    client.on('data', (answers) => {
      const count = answers.toString('latin1').split('HTTP/1.1 401').length - 1
      client.write(request.repeat(count))
      refused += count
    })
    return client.on('error', () => {})
  })
  const answers = await during(sleep(5000), () => get('/api/perfil/list'))
  expect(clients.filter(({ destroyed }) => destroyed)).toEqual([])
  for (const client of clients) client.destroy()
  expect(refused).toBeGreaterThan(16 * 8)
  expect(answers.filter(({ status, ms }) => status !== 200 || ms > OTHERS_LATENCY)).toEqual([])
})

it('others are answered while a user sends bodies that take long to parse on 28 connections', async () => {
  const length = 100_000
  const keys = Array.from({ length }, (_, index) => `{"${index.toString(36)}":`)
  const body = `{"idPerfil":1,"permisos":${keys.join('')}1${'}'.repeat(length)}}`
  const headers = { ...sessionOf(0), 'content-type': 'application/json' }
  const path = '/api/permisos/guardar-matriz'
  const answers: number[] = []
  const end = Date.now() + 5000
  const clients = Array.from({ length: 28 }, async () => {
    while (Date.now() < end) {
      const answer = await fetch(service.url + path, { method: 'POST', headers, body })
      await answer.text()
      answers.push(answer.status)
    }
  })
  const sending = Promise.all(clients)
  const others = await during(sending, () => get('/api/perfil/list'))
  expect(answers).toContain(400)
  expect(others.filter(({ status, ms }) => status !== 200 || ms > OTHERS_LATENCY)).toEqual([])
})
