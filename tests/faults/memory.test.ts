import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { BUSY } from '../answers.js'
import { cloneDatabase } from '../app.js'
import { authorization } from '../bench/data.js'
import { residentMb } from '../bench/measure.js'
import { connectTo } from '../connect.js'
import { during } from '../during.js'
import { usuario } from '../endpoints.js'
import { serve } from '../serve.js'
import { addUsers } from '../users.js'
import { type Service, startService } from './service.js'

const CONCURRENT = 50
/**
 * The most memory that the service may use while images arrive, in MB. Nested bodies take more
 * (docs/configuration.md).
 */
const PEAK = 500
/** How long the image host delays each upload, in milliseconds. */
const HOST_DELAY = 1500
const REFUSED = { ...BUSY, retryAfter: '5' }

const image = Buffer.alloc(10 * 1024 * 1024 - 1024, 'A')
/**
 * Returns the headers of a user. Each image is sent by a different user, because the service
 * refuses the bodies of one user beyond 32 MiB.
 */
const sessionOf = (id: number) => authorization({ id, idPerfil: 1, nombre: 'raiz' })

let service: Service

beforeAll(async () => {
  const prefix = await serve(async (request, response) => {
    await sleep(HOST_DELAY)
    await once(request.resume(), 'end')
    response.end(JSON.stringify({ public_id: 'usuarios_corp/x', secure_url: 'https://x.es/x.png' }))
  })
  const url = await cloneDatabase()
  service = await startService({
    DATABASE_URL: url,
    CLOUDINARY_URL: `cloudinary://clave:secreto@nube?upload_prefix=${prefix}`,
  })
  await addUsers(connectTo(url), CONCURRENT)
})

/**
 * Sends the head of a POST; without `length`, its body is chunked. The service may close the
 * connection while the body is being sent.
 */
function open(path: string, length?: number, id = 1) {
  const type = { 'content-type': 'application/json' }
  const headers = { ...sessionOf(id), ...type, ...(length && { 'content-length': length }) }
  const request = httpRequest(service.address + path, { method: 'POST', agent: false, headers })
  request.flushHeaders()
  return request.on('error', () => {})
}

/** Creates a user, as the user `id`, with an image that makes the body almost 10 MiB long. */
function post(name: string, id = 1) {
  const body = usuario(name, { imagenBase64: 'data:image/png;base64,' })
  const head = JSON.stringify(body).slice(0, -2)
  const request = open('/api/usuario', head.length + image.length + 2, id)
  request.write(head)
  request.write(image)
  request.end('"}')
  return request
}

async function answerTo(request: ReturnType<typeof post>) {
  const [response] = await once(request, 'response')
  const body = (await json(response)) as any
  return { status: response.statusCode, retryAfter: response.headers['retry-after'], body }
}

/** Requests a list; returns how long the answer took, in milliseconds. */
async function list() {
  const begin = performance.now()
  const answer = await fetch(`${service.address}/api/perfil`, { headers: sessionOf(1) })
  await answer.text()
  expect(answer.status).toBe(200)
  return performance.now() - begin
}

/** Returns the most memory that the service has used so far, in MB. */
const peakMb = () => residentMb(service.child.pid ?? 0, 'VmHWM')

describe.skipIf(process.platform !== 'linux')('memory', () => {
  it('grows by less than 100 MB for bodies above the limit', async () => {
    const before = peakMb()
    // Each body is far above the limit of a logout, and unfinished.
    const large = Array.from({ length: 60 }, () => open('/api/auth/logout'))
    for (const request of large) request.write(Buffer.alloc(3_000_000))
    const refused = () => service.lines().filter(({ status }) => status === 413)
    await expect.poll(refused, { timeout: 10_000 }).toHaveLength(60)
    for (const request of large) request.destroy()
    expect(peakMb() - before).toBeLessThan(100)
  })

  it('stays below the bound while 50 images of 10 MiB arrive, each of which is stored or answered with 503', async () => {
    const posts = Promise.all(
      Array.from({ length: CONCURRENT }, (_, index) => answerTo(post(`nuevo${index}`, 2 + index))),
    )
    const [answers, lists] = await Promise.all([posts, during(posts, list)])
    const stored = answers.filter(({ status }) => status === 200)
    console.log(`${stored.length} of ${CONCURRENT} stored, ${Math.round(peakMb())} MB at most`)
    expect(stored.length).toBeGreaterThan(0)
    for (const { body } of stored) {
      expect(body).toMatchObject({ success: true, data: { imagenUrl: 'https://x.es/x.png' } })
    }
    for (const answer of answers) if (answer.status !== 200) expect(answer).toEqual(REFUSED)
    expect(peakMb()).toBeLessThan(PEAK)
    expect(Math.max(...lists)).toBeLessThan(3000)
  })
})
