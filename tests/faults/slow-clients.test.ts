import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { cloneDatabase } from '../app.js'
import { authorization, JWT_SECRET } from '../bench/data.js'
import { COMPILED, killAll, start } from '../service.js'

const CLIENTS = 300
/** Each of these is sent all that the kernel takes off the service's hands, some MB. */
const READERS = 200
const session = authorization({ id: 1, idPerfil: 1, nombre: 'raiz' })
const HOST = `Host: x\r\nAuthorization: ${session.authorization}\r\n`
const BODY_HEAD = `${HOST}Content-Type: application/json\r\nContent-Length: `

/** The longest that others take without slow clients, in milliseconds. */
let usual: number
let service: Awaited<ReturnType<typeof start>>
const sockets = new Set<Socket>()
const timers = new Set<NodeJS.Timeout>()

beforeAll(async () => {
  const env = {
    DATABASE_URL: await cloneDatabase(),
    JWT_SECRET,
    ADMIN_USERNAME: 'raiz',
    ADMIN_PASSWORD: 'clave de prueba',
    ADMIN_EMAIL: 'raiz@ejemplo.com',
  }
  service = await start(env, COMPILED)
  await slowest(2)
  usual = await slowest(5)
})
afterEach(() => {
  for (const socket of sockets) socket.destroy()
  for (const timer of timers) clearInterval(timer)
  sockets.clear()
  timers.clear()
})
afterAll(killAll)

/** Connections that each send `begin`, and then do what `each` says every second. */
async function openAll(begin: string, each: (socket: Socket) => void, clients = CLIENTS) {
  for (let client = 0; client < clients; client += 1) {
    const socket = connect(Number(new URL(service.address).port), '127.0.0.1')
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    socket.write(begin)
    timers.add(setInterval(each, 1000, socket))
  }
  await Promise.all([...sockets].map((socket) => once(socket, 'connect')))
}

/** Asks for a list, a write and health for that long; gives the longest that all three took. */
async function slowest(seconds: number) {
  let slowest = 0
  for (const end = performance.now() + seconds * 1000; performance.now() < end; await sleep(100)) {
    const begin = performance.now()
    const headers = { ...session, 'content-type': 'application/json' }
    const body = JSON.stringify({ strNombrePerfil: 'Raíz', bitAdministrador: true })
    const answers = await Promise.all([
      fetch(`${service.address}/api/perfil`, { headers }),
      fetch(`${service.address}/api/perfil/1`, { method: 'PUT', headers, body }),
      fetch(`${service.address}/health/ready`),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    slowest = Math.max(slowest, performance.now() - begin)
  }
  return slowest
}

/** Expects that others are served within a second, or as fast as before where that is slower. */
async function expectOthersServed(seconds: number) {
  expect(await slowest(seconds)).toBeLessThan(Math.max(1000, 5 * usual))
}

/** Expects all of the connections to be closed in that time. */
async function expectCut(seconds: number) {
  const end = performance.now() + seconds * 1000
  while (sockets.size > 0 && performance.now() < end) await sleep(100)
  expect(sockets.size).toBe(0)
}

it('cuts clients that send a byte of their headers a second, after 20 s', async () => {
  await openAll('GET /api/perfil HTTP/1.1\r\nX-Slow: ', (socket) => socket.write('x'))
  for (const socket of sockets) socket.resume()
  await expectOthersServed(10)
  await expectCut(12)
})

it.each([
  ['small', '1000'],
  ['large', '10000000'],
])('cuts clients that send a byte of a %s body a second, after 10 s', async (_, length) => {
  await openAll(`PUT /api/perfil/1 HTTP/1.1\r\n${BODY_HEAD}${length}\r\n\r\n`, (socket) =>
    socket.write(' '),
  )
  for (const socket of sockets) socket.resume()
  await expectOthersServed(8)
  await expectCut(25)
})

it('cuts clients that read a byte of their answer a second, after 60 s', async () => {
  const requests = `GET /docs/static/swagger-ui-bundle.js HTTP/1.1\r\n${HOST}\r\n`.repeat(4)
  await openAll(requests, (socket) => socket.read(1), READERS)
  for (const socket of sockets) socket.pause()
  // What the kernel takes is sent at full speed.
  await sleep(10_000)
  await expectOthersServed(10)
  await sleep(45_000)
  // What the kernel has for them comes first, then the end; one that was not cut would stay open.
  for (const socket of sockets) socket.resume()
  await expectCut(40)
})
