import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startCaptcha } from '../src/dev/captcha.js'
import { cloneDatabase } from './app.js'
import { closeAtEnd } from './cleanup.js'
import { type Environment, killAll, launch, SECRETS, start as startService } from './service.js'

const ADMIN = {
  ADMIN_USERNAME: 'raiz',
  ADMIN_PASSWORD: 'clave-de-administrador',
  ADMIN_EMAIL: 'raiz@ejemplo.com',
}

let captcha: Awaited<ReturnType<typeof startCaptcha>>
let sql: postgres.Sql
let database: string

beforeAll(async () => {
  captcha = await startCaptcha()
})

afterEach(killAll)

afterAll(() => captcha.close())

/** The service on this file's database, once it listens. */
const start = (env: Environment) =>
  startService({ CAPTCHA_VERIFY_URL: captcha.url, DATABASE_URL: database, ...env })

/** An own database for the test, migrated or empty. */
async function useDatabase({ empty = false } = {}) {
  database = await cloneDatabase()
  sql = postgres(database, { max: 1, onnotice: () => {} })
  if (empty) {
    await sql`drop schema public cascade`
    await sql`create schema public`
  }
  closeAtEnd(() => sql.end())
}

const login = (address: string, strNombreUsuario: string, strPwd: string) =>
  fetch(`${address}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ strNombreUsuario, strPwd, captchaToken: 'humano' }),
  })

describe('a start with a faulty environment', () => {
  const good = { ...SECRETS, DATABASE_URL: 'postgres://u:clave-de-base@127.0.0.1:1/d', PORT: '0' }
  const VARIABLES = /^(?:DATABASE|JWT|CAPTCHA|CLOUDINARY|PORT|TRUST|CORS|ADMIN|LOG|BODY)\w*/gm
  const VALUES = /clave-de-|secreto-d|raiz|corto-y-secreto/

  it.each<[string, Environment, string[]]>([
    ['nothing', {}, ['DATABASE_URL', 'JWT_SECRET', 'CAPTCHA_SECRET', 'CLOUDINARY_URL']],
    ['CLOUDINARY_URL=https://x', { ...good, CLOUDINARY_URL: 'https://x' }, ['CLOUDINARY_URL']],
    ['TRUST_PROXY=true', { ...good, TRUST_PROXY: 'true' }, ['TRUST_PROXY']],
    ['TRUST_PROXY=1', { ...good, TRUST_PROXY: '1' }, ['TRUST_PROXY']],
    ['JWT_SECRET too short', { ...good, JWT_SECRET: 'corto-y-secreto' }, ['JWT_SECRET']],
    ['PORT=abc', { ...good, PORT: 'abc' }, ['PORT']],
    ['CORS_ORIGIN=*', { ...good, CORS_ORIGIN: '*' }, ['CORS_ORIGIN']],
    [
      'ADMIN_* in part',
      { ...good, ADMIN_USERNAME: 'raiz', ADMIN_PASSWORD: ADMIN.ADMIN_PASSWORD },
      ['ADMIN_EMAIL'],
    ],
    [
      'several at once',
      { ...good, CLOUDINARY_URL: 'cloudinary://llave:secreto-de-nube', PORT: '-1', LOG_LEVEL: 'x' },
      ['CLOUDINARY_URL', 'PORT', 'LOG_LEVEL'],
    ],
  ])('%s ends with code 1 and names the variables', async (_, env, names) => {
    const { ended, readLog } = launch(env)
    const { stderr, ...end } = await ended
    expect({ ...end, log: readLog() }).toEqual({ code: 1, signal: null, log: '' })
    expect(stderr.match(VARIABLES)).toEqual(names)
    expect(stderr).not.toMatch(VALUES)
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  it('a database that does not answer ends with code 1, and its password is not told', async () => {
    const { ended } = launch(good)
    const { stderr, ...end } = await ended
    expect(end).toEqual({ code: 1, signal: null })
    expect(stderr).toMatch(/ECONNREFUSED/)
    expect(stderr).not.toMatch(VALUES)
  })
})

describe('ADMIN_* that another user stands against', () => {
  beforeEach(async () => {
    await useDatabase()
    await sql`insert into perfil ("strNombrePerfil") values ('Otro')`
    await sql`
      insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
      values ('otra', 1, 'x', 'Otra@ejemplo.com'), ('sola', 1, 'x', 'sola@ejemplo.com')
    `
  })

  it.each<[string, string, Environment]>([
    ['ADMIN_EMAIL', 'of a new user', { ...ADMIN, ADMIN_EMAIL: 'otra@EJEMPLO.com' }],
    // Which keeps its own, but the one given is another's all the same.
    [
      'ADMIN_EMAIL',
      'of an existing user',
      { ...ADMIN, ADMIN_USERNAME: 'sola', ADMIN_EMAIL: 'otra@ejemplo.com' },
    ],
    ['ADMIN_USERNAME', 'in other case', { ...ADMIN, ADMIN_USERNAME: 'OTRA' }],
  ])('%s, %s, ends with code 1, named, and nothing changed', async (name, _, env) => {
    const before = await contents()
    const { ended } = launch({ ...SECRETS, DATABASE_URL: database, PORT: '0', ...env })
    const end = await Promise.race([ended, sleep(8000)])
    expect(end).toEqual({ code: 1, signal: null, stderr: expect.stringContaining(name) })
    expect(end?.stderr).not.toMatch(/^\s+at /m)
    expect(end?.stderr).not.toContain(ADMIN.ADMIN_PASSWORD)
    expect(await contents()).toEqual(before)
  })
})

/** All that ADMIN_* could change. */
async function contents() {
  const [perfiles, usuarios, permisos] = [
    await sql`select * from perfil order by id`,
    await sql`select * from usuario order by id`,
    await sql`select * from permisos_perfil order by id`,
  ]
  return { perfiles: [...perfiles], usuarios: [...usuarios], permisos: [...permisos] }
}

describe('ten processes on one empty database', () => {
  it('all come up, with one administrator and each migration once', {
    timeout: 60_000,
  }, async () => {
    await useDatabase({ empty: true })
    const started = await Promise.all(
      Array.from({ length: 10 }, () => start({ ...ADMIN, DATABASE_POOL_MAX: '2' })),
    )
    const ready = await Promise.all(
      started.map(async ({ address }) => {
        const response = await fetch(`${address}/health/ready`)
        return { status: response.status, body: await response.json() }
      }),
    )
    expect(ready).toEqual(Array(10).fill({ status: 200, body: { status: 'ok' } }))

    const { perfiles, usuarios, permisos } = await contents()
    expect(perfiles).toMatchObject([{ strNombrePerfil: 'ADMINISTRADOR', bitAdministrador: true }])
    expect(usuarios).toMatchObject([
      { strNombreUsuario: 'raiz', idPerfil: perfiles[0]?.id, idEstadoUsuario: true },
    ])
    expect(permisos).toHaveLength(4)
    const modulos = await sql`select "strNombreModulo" as nombre from modulo order by id`
    expect(modulos.map(({ nombre }) => nombre)).toEqual(['USUARIO', 'PERFIL', 'MODULO', 'PERMISOS'])
    // One process applied them all, and the other nine none.
    const applied = started.flatMap(({ lines }) =>
      lines().flatMap(({ applied }) => (Array.isArray(applied) ? [applied] : [])),
    )
    const rows = await sql`select nombre from migracion order by nombre`
    expect(applied).toHaveLength(10)
    expect(applied.filter(({ length }) => length > 0)).toEqual([rows.map(({ nombre }) => nombre)])

    for (const { child } of started) child.kill('SIGTERM')
    const ends = await Promise.all(started.map(({ ended }) => ended))
    expect(ends).toEqual(Array(10).fill({ code: 0, signal: null, stderr: '' }))
  })
})

describe('HOST=localhost', () => {
  beforeAll(() => useDatabase())

  it('is listened on at one address', async () => {
    const { address, lines } = await start({ HOST: 'localhost' })
    expect(address).toMatch(/^http:\/\/(127\.0\.0\.1|\[::1\]):\d+$/)
    expect((await fetch(`${address}/health/live`)).status).toBe(200)
    expect(lines().filter(({ msg }) => /listening/.test(String(msg)))).toHaveLength(1)
  })
})

describe('SIGTERM', () => {
  let slow: Server
  let asked: Promise<unknown>
  let slowUrl: string

  beforeAll(async () => {
    await useDatabase()
    slow = createServer((request, response) => {
      request.resume()
      setTimeout(() => response.end('{"success":true}'), 1500)
    })
    slow.listen(0, '127.0.0.1')
    await once(slow, 'listening')
    slowUrl = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/`
    asked = once(slow, 'request')
  })
  afterAll(() => slow.close())

  /** A connection of our own, and all that came on it. */
  async function open(address: string) {
    const socket = connect(Number(new URL(address).port), '127.0.0.1')
    await once(socket, 'connect')
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.on('error', () => {})
    return { socket, received: () => received }
  }
  const isRefused = (address: string) =>
    open(address).then(
      ({ socket }: { socket: Socket }) => !socket.destroy(),
      (error) => error.code === 'ECONNREFUSED',
    )

  it('finishes what is in flight, takes no more, and ends with 0', async () => {
    const { child, address, ended } = await start({ ...ADMIN, CAPTCHA_VERIFY_URL: slowUrl })
    const busy = await open(address)
    const credentials = JSON.stringify({
      strNombreUsuario: 'raiz',
      strPwd: ADMIN.ADMIN_PASSWORD,
      captchaToken: 'humano',
    })
    busy.socket.write(
      'POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
        `Content-Length: ${credentials.length}\r\n\r\n${credentials}`,
    )
    await asked

    const signalled = Date.now()
    child.kill('SIGTERM')
    while (!(await isRefused(address))) await sleep(20)
    expect(Date.now() - signalled).toBeLessThan(1000)
    // On the connection that is still open, behind the request that is still being served.
    busy.socket.write('GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n')

    expect(await ended).toEqual({ code: 0, signal: null, stderr: '' })
    expect(Date.now() - signalled).toBeLessThan(5000)
    const answers = busy.received().split(/(?=HTTP\/1\.1 )/)
    expect(answers.map((answer) => answer.slice(9, 12))).toEqual(['200', '503'])
    const bodies = answers.map((answer) => JSON.parse(answer.split('\r\n\r\n')[1] ?? ''))
    expect(bodies).toEqual([
      {
        success: true,
        token: expect.stringMatching(/^ey/),
        user: {
          id: 1,
          nombre: 'raiz',
          idPerfil: 1,
          correo: 'raiz@ejemplo.com',
          celular: null,
          imagenUrl: null,
        },
      },
      { statusCode: 503, message: 'No disponible' },
    ])
  })

  it('answers once more on an idle connection, and ends it', async () => {
    const { child, address, ended } = await start({})
    const [used, unused] = [await open(address), await open(address)]
    const ask = () => used.socket.write('GET /api/modulo/list HTTP/1.1\r\nHost: x\r\n\r\n')
    ask()
    await expect.poll(used.received).toMatch(/\}$/)

    const signalled = Date.now()
    child.kill('SIGTERM')
    while (!(await isRefused(address))) await sleep(20)
    await sleep(500)
    ask()
    await once(used.socket, 'close')
    const [first, second] = used.received().split(/(?=HTTP\/1\.1 )/)
    expect(first).toMatch(/^HTTP\/1\.1 401 .*\r\nConnection: keep-alive\r\n/is)
    expect(second).toMatch(/^HTTP\/1\.1 401 .*\r\nConnection: close\r\n/is)

    expect(await ended).toEqual({ code: 0, signal: null, stderr: '' })
    expect(Date.now() - signalled).toBeLessThan(5000)
    unused.socket.destroy()
  })

  it.each(['SIGINT', 'SIGHUP'] as const)('%s does the same', async (signal) => {
    const { child, ended } = await start({})
    child.kill(signal)
    expect(await ended).toMatchObject({ code: 0, signal: null })
  })

  it('ends with 0 within 10 s beside connections that hang', async () => {
    const { child, address, ended } = await start({})
    const silent = await open(address)
    const halfway = await open(address)
    halfway.socket.write('POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n')
    const inBody = await open(address)
    inBody.socket.write(
      'POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
        'Content-Length: 9\r\n\r\n{',
    )
    await sleep(200)

    const signalled = Date.now()
    child.kill('SIGTERM')
    expect(await ended).toEqual({ code: 0, signal: null, stderr: '' })
    expect(Date.now() - signalled).toBeLessThan(10_000)
    for (const { socket } of [silent, halfway, inBody]) socket.destroy()
  })
})

describe('ADMIN_* at the start', () => {
  const ALL = { bitAgregar: true, bitEditar: true, bitConsulta: true, bitEliminar: true }

  it('takes the oldest profile with the flag and an existing user, who keeps its email', async () => {
    await useDatabase()
    // As a database that was emptied by hand may be: names that mislead, nobody active.
    await sql`
      insert into perfil ("strNombrePerfil", "bitAdministrador")
      values ('ADMINISTRADOR', false), ('Dirección', true), ('ADMINISTRADOR', true)
    `
    await sql`
      insert into usuario
        ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular", "idEstadoUsuario")
      values ('otra', 2, 'x', 'otra@ejemplo.com', null, false),
        ('raiz', 1, 'x', 'propio@ejemplo.com', '555', false)
    `
    const before = await contents()
    const first = await start(ADMIN)
    const taken = await contents()
    expect(taken).toEqual({
      ...before,
      usuarios: [
        before.usuarios[0],
        {
          ...before.usuarios[1],
          idPerfil: 2,
          idEstadoUsuario: true,
          // Whoever had a session under the old password has none now.
          versionSesion: expect.any(Number),
          strPwd: expect.stringMatching(/^\$2b\$10\$/),
        },
      ],
    })
    const answer = await login(first.address, 'raiz', ADMIN.ADMIN_PASSWORD)
    expect({ status: answer.status, body: await answer.json() }).toEqual({
      status: 200,
      body: {
        success: true,
        token: expect.any(String),
        user: {
          id: 2,
          nombre: 'raiz',
          idPerfil: 2,
          correo: 'propio@ejemplo.com',
          celular: '555',
          imagenUrl: null,
        },
      },
    })

    // Now that one is active, nothing changes any more, and the log says so.
    const second = await start({ ...ADMIN, ADMIN_PASSWORD: 'otra-clave', ADMIN_USERNAME: 'nueva' })
    const third = await start({ ...ADMIN, ADMIN_PASSWORD: 'otra-clave' })
    expect(await contents()).toEqual(taken)
    for (const { lines } of [second, third]) {
      expect(lines().map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/ADMIN_/))
    }
    expect(second.readLog() + third.readLog()).not.toContain('otra-clave')
  })

  it('makes a profile where none has the flag, and leaves the one that only bears the name', async () => {
    await useDatabase()
    await sql`insert into perfil ("strNombrePerfil") values ('ADMINISTRADOR')`
    await sql`insert into modulo ("strNombreModulo") values ('VENTAS')`
    await start(ADMIN)

    const { perfiles, usuarios, permisos } = await contents()
    expect(perfiles).toEqual([
      { ...perfiles[0], id: 1, strNombrePerfil: 'ADMINISTRADOR', bitAdministrador: false },
      { ...perfiles[1], id: 2, strNombrePerfil: 'ADMINISTRADOR', bitAdministrador: true },
    ])
    expect(usuarios).toEqual([
      {
        ...usuarios[0],
        strNombreUsuario: 'raiz',
        idPerfil: 2,
        strCorreo: 'raiz@ejemplo.com',
        strNumeroCelular: null,
        idEstadoUsuario: true,
        imagenUrl: null,
      },
    ])
    const full = (idModulo: number) => ({ idPerfil: 2, idModulo, ...ALL, bitDetalle: true })
    expect(permisos).toMatchObject([1, 2, 3, 4, 5].map(full))
  })

  it('lets an inactive administrator not count', async () => {
    await useDatabase()
    await start(ADMIN)
    await sql`update usuario set "idEstadoUsuario" = false`
    await start({ ...ADMIN, ADMIN_PASSWORD: 'clave-nueva' })
    const { usuarios, perfiles } = await contents()
    expect(perfiles).toHaveLength(1)
    expect(usuarios).toMatchObject([{ strNombreUsuario: 'raiz', idEstadoUsuario: true }])
  })
})
