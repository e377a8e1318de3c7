import { existsSync } from 'node:fs'
import { readdir, readlink } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, NOT_UPDATED, statusCodeAnswer } from '../answers.js'
import { ADMIN, ADMIN_ENV, cloneDatabase } from '../app.js'
import { serve } from '../serve.js'
import { killAll, start } from '../service.js'
import { CREDENTIALS, login, send } from './client.js'
import { addUsers, nombreOf } from './users.js'

const hasProc = existsSync('/proc/self/fd')
const skipNote = hasProc ? '' : ' (skipped: there is no /proc here)'
const CALLS = 20

let service: Awaited<ReturnType<typeof start>>
let token: string
/**
 * A token of a different user for each call, because one user's statements and passwords wait for
 * each other.
 */
let tokens: string[]

/** Starts a host that handles each request with the function that `behave` holds at that time. */
async function startHost() {
  const host = { url: '', behave: (() => {}) as RequestListener }
  host.url = await serve((request, response) => host.behave(request, response))
  return host
}

/** How many database connections the service may open while the calls run. */
const POOL_MAX = 10

const answerWith =
  (body: string): RequestListener =>
  async (request, response) => {
    if (!request.readableEnded) await text(request)
    response.end(body)
  }

/** The behaviours of broken hosts; the first three keep the caller waiting. */
const TROUBLES: RequestListener[] = [
  // The host does not read the request, so a large body gets stuck.
  (request) => request.pause(),
  (request) => request.resume(),
  (request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => response.write(' '), 200)
    response.on('close', () => clearInterval(timer))
  },
  (request) => request.socket.destroy(),
  answerWith('<html>'),
]
/** How many of CALLS calls a host keeps waiting. */
const WAITING = (CALLS / TROUBLES.length) * 3

let captcha: Awaited<ReturnType<typeof startHost>>
let images: Awaited<ReturnType<typeof startHost>>

afterAll(async () => {
  await killAll()
})

beforeAll(async () => {
  captcha = await startHost()
  captcha.behave = answerWith('{"success":true}')
  images = await startHost()
  const url = await cloneDatabase()
  service = await start({
    ...ADMIN_ENV,
    DATABASE_URL: url,
    CAPTCHA_VERIFY_URL: captcha.url,
    CLOUDINARY_URL: `cloudinary://clave:secreto@nube?upload_prefix=${encodeURIComponent(images.url)}`,
    LOGIN_RATE_LIMIT: '0',
  })
  token = await login(service.address)
  const sql = postgres(url, { max: 1 })
  await addUsers(sql, CALLS)
  await sql.end()
  tokens = await Promise.all(
    Array.from({ length: CALLS }, (_, call) => login(service.address, nombreOf(call + 1))),
  )
})

const get = (path: string) => send('GET', service.address + path, { token })

/** Returns how many sockets the service has open. */
async function countSockets() {
  const folder = `/proc/${service.child.pid}/fd`
  const names = await readdir(folder)
  const targets = await Promise.all(names.map((n) => readlink(`${folder}/${n}`).catch(() => '')))
  return targets.filter((target) => target.startsWith('socket:')).length
}

async function timed(call: Promise<Answer>) {
  const begin = performance.now()
  const answer = await call
  return { answer, ms: performance.now() - begin }
}

/** Waits for `calls` and sends ordinary requests meanwhile; returns the answers of both. */
async function meanwhile(calls: Promise<Answer>[]) {
  let running = true
  const others: Awaited<ReturnType<typeof timed>>[] = []
  const paths = ['/api/modulo/list', '/api/permisos/mis-permisos/1', '/health/ready']
  const loops = paths.map(async (path) => {
    while (running) {
      others.push(await timed(get(path)))
      await sleep(20)
    }
  })
  const results = await Promise.all(calls.map(timed))
  running = false
  await Promise.all(loops)
  return { results, others }
}

/** Expects that `calls` get `failure`, at once or after `limit` ms, and others succeed in 1 s. */
async function expectUnharmed(calls: Promise<Answer>[], failure: Answer, limit: number) {
  const { results, others } = await meanwhile(calls)
  expect(results.map(({ answer }) => answer)).toEqual(calls.map(() => failure))
  const times = results.map(({ ms }) => ms).toSorted((a, b) => a - b)
  expect(times.filter((ms) => ms < 3000)).toHaveLength(CALLS - WAITING)
  expect(times.filter((ms) => ms > limit - 100 && ms < limit + 3000)).toHaveLength(WAITING)
  expect(others.length).toBeGreaterThan(50)
  expect(others.filter(({ answer, ms }) => answer.status !== 200 || ms > 1000)).toEqual([])
}

const CAPTCHA_UNAVAILABLE = statusCodeAnswer(
  503,
  'El servicio de validación del captcha no está disponible.',
)

describe('20 simultaneous calls to a broken host fail in time and delay no other request', () => {
  it.skipIf(!hasProc)(`logins fail within 5 s at a broken captcha host${skipNote}`, async () => {
    const before = await countSockets()
    captcha.behave = async (request, response) => {
      const form = new URLSearchParams(await text(request))
      TROUBLES[Number(form.get('response'))]?.(request, response)
    }
    const calls = Array.from({ length: CALLS }, (_, call) => {
      const body = { ...CREDENTIALS, captchaToken: `${call % TROUBLES.length}` }
      return send('POST', `${service.address}/api/auth/login`, { body })
    })
    await expectUnharmed(calls, CAPTCHA_UNAVAILABLE, 5000)
    await expect.poll(countSockets, { timeout: 10_000 }).toBeLessThanOrEqual(before + POOL_MAX)
  })

  it.skipIf(!hasProc)(`uploads fail within 30 s at a broken image host${skipNote}`, async () => {
    const before = await countSockets()
    let uploads = 0
    const removed: string[] = []
    images.behave = (request, response) => {
      if (!request.url?.endsWith('/destroy'))
        return TROUBLES[uploads++ % TROUBLES.length]?.(request, response)
      removed.push(request.url)
      answerWith('{"result":"ok"}')(request, response)
    }
    // Without a password, the service has none to hash before the upload.
    const body = {
      strNombreUsuario: ADMIN.strNombreUsuario,
      idPerfil: 1,
      strCorreo: ADMIN.strCorreo,
      idEstadoUsuario: true,
      imagenBase64: `data:image/png;base64,${'A'.repeat(2 ** 20)}`,
    }
    const calls = tokens.map((token) =>
      send('PUT', `${service.address}/api/usuario/1`, { token, body }),
    )
    await expectUnharmed(calls, NOT_UPDATED, 30_000)
    // An image may have arrived whatever the host answered, so each upload gets a removal.
    await expect.poll(() => removed).toHaveLength(CALLS)
    await expect.poll(countSockets, { timeout: 10_000 }).toBeLessThanOrEqual(before + POOL_MAX)
  })
})
