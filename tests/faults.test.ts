import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startImageHost } from '../src/dev/imagenes.js'
import { type PostgresServer, startPostgres } from '../src/dev/postgres.js'
import { migrate } from '../src/migrate.js'
import { ADMIN, PNG, testApp } from './app.js'
import { closeAtEnd } from './cleanup.js'
import { A, ENDPOINTS, INTERNAL, NOT_READY, NOT_UPDATED, READY, usuario } from './endpoints.js'

type Service = Awaited<ReturnType<typeof testApp>>
type Method = Parameters<Service['call']>[0]

/** One call with its whole answer, if that comes within 8 s, and how long it took in milliseconds. */
async function timed(test: Service, method: Method, url: string, body?: object) {
  const since = Date.now()
  const { status, body: answer } = await Promise.race([
    test.call(method, url, body),
    sleep(8000, { status: 0, body: undefined as any }, { ref: false }),
  ])
  return { answer: { status, body: answer }, ms: Date.now() - since }
}

const cloudinaryUrl = (address: string) =>
  `cloudinary://clave:secreto@nube?upload_prefix=${encodeURIComponent(address)}`

/** Passes a request on to the image host at `url`, and its answer back. */
async function forward(url: string, request: IncomingMessage, response: ServerResponse) {
  const { method = '', headers } = request
  const answer = await fetch(url + request.url, {
    method,
    headers: { 'content-type': headers['content-type'] ?? '' },
    body: await buffer(request),
  })
  response.writeHead(answer.status).end(await answer.text())
}

async function listen(listener: RequestListener) {
  const server = createServer(listener)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  closeAtEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('the database', () => {
  const folder = join(tmpdir(), `llavero-faults-${randomBytes(6).toString('hex')}`)
  const settings = { fsync: 'off' }
  let server: PostgresServer
  let test: Service
  let images: Awaited<ReturnType<typeof startImageHost>>
  let duringUpload = async () => {}

  beforeAll(async () => {
    server = await startPostgres({ folder, settings })
    const sql = postgres(server.url, { max: 1, onnotice: () => {} })
    await migrate(sql)
    await sql.end()
    images = await startImageHost()
    const proxy = await listen(async (request, response) => {
      if (request.url?.endsWith('/upload')) await duringUpload()
      await forward(images.url, request, response)
    })
    test = await testApp({ DATABASE_URL: server.url, CLOUDINARY_URL: cloudinaryUrl(proxy) })
    await test.app.sql`insert into perfil ("strNombrePerfil") values ('Segundo')`
  })
  afterAll(async () => {
    await images?.close()
    await server?.stop()
    await rm(server.folder, { recursive: true })
    await rm(folder, { force: true })
  })

  /** Calls every endpoint at once and expects the failure that the contract gives each in time. */
  async function expectFailures() {
    const results = await Promise.all(
      ENDPOINTS.map(async ([method, url, body, expected]) => {
        const { answer, ms } = await timed(test, method, url, body)
        return { name: `${method} ${url}`, answer, expected, ms }
      }),
    )
    const slow = results.filter(({ ms }) => ms > 5000).map(({ name, ms }) => ({ name, ms }))
    expect(slow).toEqual([])
    expect(results.map(({ name, answer }) => ({ name, ...answer }))).toEqual(
      results.map(({ name, expected }) => ({ name, ...expected })),
    )
    const ready = await timed(test, 'GET', '/health/ready')
    expect(ready.answer).toEqual(NOT_READY)
    expect(ready.ms).toBeLessThan(5000)
    expect(await timed(test, 'GET', '/health/live')).toMatchObject({ answer: READY })
  }

  /** Expects the service to be back 5 s from now, for as many calls as it has connections. */
  async function expectRecovery() {
    for (const deadline = Date.now() + 5000; ; await sleep(50)) {
      const { answer } = await timed(test, 'GET', '/api/modulo/list')
      if (answer.status === 200) break
      expect(answer).toEqual(A(500, 'Error al cargar módulos'))
      if (Date.now() > deadline) throw new Error('not back after 5 s')
    }
    const lists = await Promise.all(
      Array.from({ length: 20 }, () => timed(test, 'GET', '/api/perfil/list')),
    )
    const data = [
      { id: 1, strNombrePerfil: 'ADMINISTRADOR' },
      { id: 2, strNombrePerfil: 'Segundo' },
    ]
    expect(lists.map(({ answer }) => answer)).toEqual(
      Array(20).fill({ status: 200, body: { success: true, data } }),
    )
    expect(await timed(test, 'GET', '/health/ready')).toMatchObject({ answer: READY })
    await test.login(ADMIN.strNombreUsuario, ADMIN.strPwd)
  }

  /** Reads and writes from 16 loops while `meanwhile` runs; gives all the answers. */
  async function underLoad(meanwhile: () => Promise<void>) {
    const results: { name: string; ms: number; answer: unknown }[] = []
    let running = true
    const repeatable = ENDPOINTS.filter(([method, url]) => method === 'GET' || /matriz/.test(url))
    const loops = Array.from({ length: 16 }, async (_, loop) => {
      for (let n = loop; running; n++) {
        const [method, url, body] = repeatable[n % repeatable.length] ?? []
        if (!method || !url) continue
        results.push({ name: `${method} ${url}`, ...(await timed(test, method, url, body)) })
        if (results.at(-1)?.ms === 0) await sleep(1)
      }
    })
    await sleep(300)
    await meanwhile()
    running = false
    await Promise.all(loops)
    return results
  }

  function expectContract(results: Awaited<ReturnType<typeof underLoad>>) {
    expect(results.filter(({ ms }) => ms > 5000)).toEqual([])
    for (const { name, answer } of results) {
      const [, , , failure] = ENDPOINTS.find(([method, url]) => name === `${method} ${url}`) ?? []
      const { status, body } = answer as { status: number; body: { success?: boolean } }
      if (!(status === 200 && body.success === true))
        expect({ name, ...failure }).toEqual({ name, status, body })
    }
    const isGood = ({ answer }: { answer: unknown }) =>
      (answer as { status: number }).status === 200
    expect(results.some(isGood)).toBe(true)
    expect(results.every(isGood)).toBe(false)
  }

  it('killed under load: every endpoint fails as the contract says, and recovers', async () => {
    const results = await underLoad(async () => {
      process.kill(server.pid, 'SIGKILL')
      await sleep(1500)
    })
    expectContract(results)
    await expectFailures()

    const { port } = server
    await server.stop()
    server = await startPostgres({ folder, port, settings })
    await expectRecovery()
  })

  it('stopped and started again under load: nothing but the contract, then recovers', async () => {
    const results = await underLoad(async () => {
      const { port } = server
      await server.stop()
      server = await startPostgres({ folder, port, settings })
      await sleep(500)
    })
    expectContract(results)
    await expectRecovery()
  })

  /** Stops the server's processes where they stand; gives what lets them go on. */
  async function freeze() {
    const found = await test.app.sql<{ pid: number }[]>`
      select pid from pg_stat_activity where application_name = 'llavero'
    `
    // Each is in a process group of its own, and without the first no more of them are made.
    const pids = [server.pid, ...found.map(({ pid }) => pid)]
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    return () => {
      for (const pid of pids) process.kill(pid, 'SIGCONT')
    }
  }

  it('hung: every endpoint fails in time, and recovers', async () => {
    // All connections are there, so that requests wait for answers and not for connections.
    await Promise.all(Array.from({ length: 20 }, () => test.call('GET', '/api/perfil/list')))
    const thaw = await freeze()
    await expectFailures().finally(thaw)
    await expectRecovery()
  })

  it('hung under load: every answer in time, and recovers', async () => {
    let thaw = () => {}
    const results = await underLoad(async () => {
      thaw = await freeze()
      await sleep(5500)
    }).finally(() => thaw())
    expectContract(results)
    await expectRecovery()
  })

  it('hung between upload and insert: no user is left with an image that was removed', async () => {
    let thaw = () => {}
    duringUpload = async () => {
      thaw = await freeze()
    }
    const body = usuario('eva', { imagenBase64: PNG })
    const { answer, ms } = await timed(test, 'POST', '/api/usuario', body).finally(() => thaw())
    expect({ answer, late: ms > 6000 }).toEqual({ answer: INTERNAL, late: false })
    await expectRecovery()
    await sleep(500)
    // The insert that nobody waited for may have been carried out after all, but then wholly.
    const [eva] = await test.app.sql`
      delete from usuario where "strNombreUsuario" = 'eva' returning "imagenUrl"
    `
    if (eva) expect((await fetch(eva.imagenUrl)).status).toBe(200)
  })

  it('has lost and gained nothing in all that', async () => {
    const { answer } = await timed(test, 'GET', '/api/permisos/por-perfil/2')
    expect(answer.body.data).toMatchObject([{ idModulo: 1, bitConsulta: true }])
    expect(await test.app.sql`select "strNombreUsuario" as nombre from usuario`).toEqual([
      { nombre: ADMIN.strNombreUsuario },
    ])
    expect(await test.app.sql`select id from modulo`).toHaveLength(4)
  })
})

describe('the captcha host', () => {
  const UNAVAILABLE = A(503, 'El servicio de validación del captcha no está disponible.')
  const REJECTED = A(400, 'Fallo en la validación del captcha.')
  const json =
    (status: number, body: string): RequestListener =>
    (_, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(body)
    }
  /** What it does with each token. */
  const BEHAVIOURS: Record<string, RequestListener> = {
    humano: json(200, '{"success":true}'),
    silence: () => {},
    'silence after the head': (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"success":')
    },
    trickle: (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"success":true,"a":"')
      const timer = setInterval(() => response.write('x'), 500)
      response.on('close', () => clearInterval(timer))
    },
    reset: (request) => request.socket.destroy(),
    garbage: json(200, '<html>success</html>'),
    nothing: json(200, ''),
    null: json(200, 'null'),
    list: json(200, '[true]'),
    'no success': json(200, '{}'),
    'text true': json(200, '{"success":"true"}'),
    'number 1': json(200, '{"success":1}'),
    '500 with success': json(500, '{"success":true}'),
    '404 with success': json(404, '{"success":true}'),
    endless: (_, response) => {
      response.writeHead(200)
      const more = () => response.write('x'.repeat(65536), () => setImmediate(more))
      more()
    },
    redirect: (_, response) => {
      response.writeHead(307, { location: '/elsewhere' }).end()
    },
    refused: json(200, '{"success":false,"error-codes":["timeout-or-duplicate"]}'),
  }
  let test: Service

  beforeAll(async () => {
    const url = await listen(async (request, response) => {
      const token = new URLSearchParams(await text(request)).get('response') ?? ''
      const behave = request.url === '/elsewhere' ? BEHAVIOURS.humano : BEHAVIOURS[token]
      behave?.(request, response)
    })
    test = await testApp({ CAPTCHA_VERIFY_URL: `${url}/verify` })
  })

  const login = (captchaToken: string, service = test) =>
    timed(service, 'POST', '/api/auth/login', { ...ADMIN, captchaToken })

  it('is given 5 s, and believed only when it says so properly', async () => {
    const tokens = Object.keys(BEHAVIOURS).filter((token) => token !== 'humano')
    const results = await Promise.all(
      tokens.map(async (token) => ({ token, ...(await login(token)) })),
    )
    expect(results.map(({ token, answer }) => ({ token, ...answer }))).toEqual(
      tokens.map((token) => ({ token, ...(token === 'refused' ? REJECTED : UNAVAILABLE) })),
    )
    for (const { token, ms } of results) {
      const waits = /silence|trickle/.test(token)
      expect(ms, token).toBeLessThan(waits ? 6000 : 2000)
      if (waits) expect(ms, token).toBeGreaterThan(4500)
    }
    expect((await login('humano')).answer.status).toBe(200)
  })

  it('is asked before name and password are looked at', async () => {
    const wrong = { strNombreUsuario: 'nadie', strPwd: 'x', captchaToken: 'garbage' }
    expect((await timed(test, 'POST', '/api/auth/login', wrong)).answer).toEqual(UNAVAILABLE)
    const bare = { captchaToken: 'humano' }
    expect((await timed(test, 'POST', '/api/auth/login', bare)).answer).toEqual(
      A(400, 'Usuario y contraseña son obligatorios'),
    )
  })

  it('may be out of reach', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await new Promise((done) => closed.once('listening', done))
    const { port } = closed.address() as AddressInfo
    await new Promise((done) => closed.close(done))
    const { app } = await reconfigured({ captchaVerifyUrl: `http://127.0.0.1:${port}/` })
    const response = await app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: { ...ADMIN, captchaToken: 'humano' },
    })
    expect({ status: response.statusCode, body: response.json() }).toEqual(UNAVAILABLE)
  })

  /** The application of the same tests with another configuration, which could log nobody in. */
  async function reconfigured(changes: Partial<Service['config']>) {
    const { buildApp } = await import('../src/app.js')
    const app = await buildApp({ ...test.config, ...changes, logLevel: 'silent' })
    closeAtEnd(() => app.close())
    return { app }
  }
})

describe('the image host', () => {
  type Behaviour = RequestListener | 'works' | 'works but for removals'
  const NOT_UPLOADED = A(500, 'No se pudo subir la imagen')
  const json =
    (status: number, body: string): RequestListener =>
    (request, response) => {
      request.resume()
      request.on('end', () => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(body)
      })
    }
  const BEHAVIOURS: [string, RequestListener][] = [
    ['resets the connection', (request) => request.socket.destroy()],
    [
      'resets it after the upload',
      (request) => request.resume().on('end', () => request.socket.destroy()),
    ],
    ['refuses the signature', json(401, '{"error":{"message":"Invalid Signature"}}')],
    ['has an error of its own', json(500, '{"error":{"message":"General Error"}}')],
    ['answers garbage', json(200, '<html>')],
    ['answers nothing', json(200, '')],
    ['answers null', json(200, 'null')],
    ['answers without secure_url', json(200, '{"public_id":"usuarios_corp/x","url":"http://x/y"}')],
    ['answers secure_url that is no text', json(200, '{"public_id":"x","secure_url":{"a":1}}')],
  ]
  let behaviour: Behaviour = 'works'
  let paths: string[] = []
  let test: Service
  let images: Awaited<ReturnType<typeof startImageHost>>

  beforeAll(async () => {
    images = await startImageHost()
    closeAtEnd(images.close)
    const url = await listen(async (request, response) => {
      paths.push(request.url ?? '')
      if (typeof behaviour === 'function') return behaviour(request, response)
      if (behaviour !== 'works' && request.url?.endsWith('/destroy'))
        return request.socket.destroy()
      await forward(images.url, request, response)
    })
    test = await testApp({ CLOUDINARY_URL: cloudinaryUrl(url) })
    await test.call('POST', '/api/usuario', usuario('fija'))
  })
  afterEach(() => {
    behaviour = 'works'
    paths = []
  })

  const usuarios = async () => [...(await test.app.sql`select * from usuario order by id`)]
  const imagenBase64 = PNG

  it.each(BEHAVIOURS)('that %s: nothing is stored', async (_, listener) => {
    const before = await usuarios()
    behaviour = listener
    const created = await timed(test, 'POST', '/api/usuario', usuario('ana', { imagenBase64 }))
    expect(created.answer).toEqual(NOT_UPLOADED)
    const edited = usuario('otro-nombre', { imagenBase64 })
    expect((await timed(test, 'PUT', '/api/usuario/2', edited)).answer).toEqual(NOT_UPDATED)
    expect(await usuarios()).toEqual(before)
    expect(paths.filter((path) => path.endsWith('/upload'))).toHaveLength(2)
  })

  it('that cannot be reached: nothing is stored', async () => {
    const CLOUDINARY_URL = cloudinaryUrl('http://127.0.0.1:9')
    const { databaseUrl: DATABASE_URL } = test.config
    const other = await testApp({ DATABASE_URL, CLOUDINARY_URL })
    const before = await usuarios()
    const created = await timed(other, 'POST', '/api/usuario', usuario('ana', { imagenBase64 }))
    expect(created.answer).toEqual(NOT_UPLOADED)
    const edited = usuario('otro-nombre', { imagenBase64 })
    expect((await timed(other, 'PUT', '/api/usuario/2', edited)).answer).toEqual(NOT_UPDATED)
    expect(await usuarios()).toEqual(before)
  })

  it('is told to remove an upload that was cut off, as it may have arrived', async () => {
    behaviour = (request) => request.resume().on('end', () => request.socket.destroy())
    const { answer } = await timed(test, 'POST', '/api/usuario', usuario('ana', { imagenBase64 }))
    expect(answer).toEqual(NOT_UPLOADED)
    await expect.poll(() => paths.filter((path) => path.endsWith('/destroy'))).toHaveLength(1)
  })

  const orphans = () =>
    images.uploads.map(({ publicId }) => publicId).filter((id) => !images.destroyed.includes(id))

  it.each<[string, Method, string, object, object]>([
    [
      'an insert that fails',
      'POST',
      '/api/usuario',
      usuario('ana', { strCorreo: ADMIN.strCorreo }),
      A(500, 'El correo electrónico ya está registrado'),
    ],
    [
      'an insert into no profile',
      'POST',
      '/api/usuario',
      usuario('ana', { idPerfil: 999 }),
      A(500, 'El perfil indicado no existe'),
    ],
    [
      'an update that fails',
      'PUT',
      '/api/usuario/2',
      usuario('fija', { strNombreUsuario: ADMIN.strNombreUsuario }),
      A(500, 'El nombre de usuario ya está registrado'),
    ],
    [
      'no user',
      'PUT',
      '/api/usuario/999',
      usuario('ana'),
      { status: 200, body: { success: true } },
    ],
  ])('keeps no image of %s', async (_, method, url, body, expected) => {
    const [before, uploads] = [await usuarios(), images.uploads.length]
    const { answer } = await timed(test, method, url, { ...body, imagenBase64 })
    expect(answer).toEqual(expected)
    await expect.poll(orphans).toEqual([])
    expect(await usuarios()).toEqual(before)
    // Where it was refused before the upload there was nothing to remove.
    expect(images.uploads.length - uploads).toBeLessThanOrEqual(1)
  })

  it('keeps no image when the database fails after the upload', async () => {
    const before = await usuarios()
    await test.app.sql`alter table usuario add constraint falla check ("strNumeroCelular" <> '13')`
    const body = usuario('ana', { strNumeroCelular: '13', imagenBase64 })
    const uploads = images.uploads.length
    expect((await timed(test, 'POST', '/api/usuario', body)).answer).toEqual(INTERNAL)
    const edited = { ...body, strNombreUsuario: 'fija', strCorreo: 'fija@ejemplo.com' }
    expect((await timed(test, 'PUT', '/api/usuario/2', edited)).answer).toEqual(NOT_UPDATED)
    expect(images.uploads).toHaveLength(uploads + 2)
    await expect.poll(orphans).toEqual([])
    expect(await usuarios()).toEqual(before)
  })

  it('may fail at the removal too: the answer is the same', async () => {
    behaviour = 'works but for removals'
    const body = usuario('ana', { strCorreo: ADMIN.strCorreo, imagenBase64 })
    const { answer } = await timed(test, 'POST', '/api/usuario', body)
    expect(answer).toEqual(A(500, 'El correo electrónico ya está registrado'))
    expect(paths.at(-1)).toMatch(/\/destroy$/)
  })
})
