import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { hostname } from 'node:os'
import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import type { AnswerWithHeaders } from './answers.js'
import { ADMIN, cloneDatabase, JWT_SECRET, startImages, testApp } from './app.js'
import { closeAtEnd } from './cleanup.js'
import { countWaiting } from './hold.js'

const PASSWORD = 'contraseña-buena-de-ana'
const BAD_PASSWORD = 'contraseña-mala'
const CAPTCHA_TOKEN = 'ficha-del-captcha-7319'
const IMAGE = randomBytes(3000).toString('base64')
const CLOUDINARY_SECRET = 'secreto'
const WRONG_CLOUDINARY_SECRET = 'otra-llave-de-nube'
/**
 * If the log contains this password, the service has logged it. The server of TEST_DATABASE_URL may
 * have a password, such as `postgres`, that the log contains for another reason.
 */
const DATABASE_PASSWORD = 'clave-de-la-base-7319'

type Service = Awaited<ReturnType<typeof testApp>>
type Line = Record<string, unknown>

/** Creates a database and a user with DATABASE_PASSWORD; returns the URL for this user. */
async function makeDatabase() {
  const url = new URL(await cloneDatabase())
  const role = `registro_${url.pathname.slice(1)}`
  const sql = postgres(url.href, { max: 1, onnotice: () => {} })
  await sql.unsafe(`create role ${role} superuser login password '${DATABASE_PASSWORD}'`)
  closeAtEnd(async () => {
    await sql.unsafe(`drop role ${role}`)
    await sql.end()
  })
  url.username = role
  url.password = DATABASE_PASSWORD
  return url.href
}

const DATABASE_URL = await makeDatabase()
const service = await testApp({ LOG_LEVEL: 'trace', DATABASE_URL })
const answers: AnswerWithHeaders[] = []
const hashes: string[] = []
const tokens: string[] = []

const lines = (): Line[] => service.readLines()

/** Sends a request and keeps its answer for the tests below. */
async function call(...request: Parameters<Service['call']>): Promise<AnswerWithHeaders> {
  const answer = await service.call(...request)
  answers.push(answer)
  if (answer.body?.data?.strPwd) hashes.push(answer.body.data.strPwd)
  if (answer.body?.token) tokens.push(answer.body.token)
  return answer
}

const statusOf = async (...request: Parameters<Service['call']>) => (await call(...request)).status

const login = (strNombreUsuario: string, strPwd: string, captchaToken = CAPTCHA_TOKEN) =>
  statusOf('POST', '/api/auth/login', { strNombreUsuario, strPwd, captchaToken }, { token: null })

const usuario = (strNombreUsuario: string) => ({
  strNombreUsuario,
  idPerfil: 1,
  strPwd: PASSWORD,
  strCorreo: `${strNombreUsuario}@ejemplo.com`,
  idEstadoUsuario: true,
  imagenBase64: `data:image/png;base64,${IMAGE}`,
})

/** Sends requests of all the kinds that the tests below look for in the log. */
async function fillLog() {
  const badHost = await startImages()
  tokens.push(service.adminToken)
  const json = { headers: { 'content-type': 'application/json' } }

  expect(await login(ADMIN.strNombreUsuario, ADMIN.strPwd)).toBe(200)
  expect(await login(ADMIN.strNombreUsuario, BAD_PASSWORD)).toBe(401)
  expect(await login('nadie', BAD_PASSWORD)).toBe(401)
  expect(await login(ADMIN.strNombreUsuario, ADMIN.strPwd, 'rechazar')).toBe(400)

  expect(await statusOf('POST', '/api/usuario', usuario('ana'))).toBe(200)
  expect(await statusOf('PUT', '/api/usuario/2', usuario('ana'))).toBe(200)
  expect(await login('ana', PASSWORD)).toBe(200)
  // These violate constraints, and PostgreSQL's details quote the row with its hash.
  expect(await statusOf('POST', '/api/usuario', usuario('ana'))).toBe(500)
  expect(await statusOf('PUT', '/api/usuario/2', usuario(ADMIN.strNombreUsuario))).toBe(500)
  expect(await statusOf('POST', '/api/usuario', { ...usuario('eva'), idPerfil: 999 })).toBe(500)
  expect(await statusOf('POST', '/api/modulo', { strNombreModulo: 'perfil' })).toBe(200)
  // The code does not know this constraint, so its violation is an unexpected failure.
  await service.sql`alter table usuario add check ("strNombreUsuario" <> 'iris')`
  expect(await statusOf('POST', '/api/usuario', usuario('iris'))).toBe(500)
  expect(await statusOf('PUT', '/api/usuario/2', usuario('iris'))).toBe(500)
  // The image host rejects the signature, and quotes the text that was signed.
  const badUrl = `cloudinary://clave:${WRONG_CLOUDINARY_SECRET}@nube?upload_prefix=${badHost.url}`
  const second = await testApp({
    DATABASE_URL,
    CLOUDINARY_URL: badUrl,
    LOG_LEVEL: 'trace',
  })
  expect((await second.call('POST', '/api/usuario', usuario('olga'))).status).toBe(500)
  const readFirst = service.readLog
  service.readLog = () => readFirst() + second.readLog()

  for (const url of ['/api/auth/login', '/api/usuario', '/api/modulo']) {
    const truncated = `{"strNombreUsuario":"ana","strPwd":"${PASSWORD}","captchaToken":"${CAPTCHA_TOKEN}"`
    expect(await statusOf('POST', url, truncated, json)).toBe(400)
    expect(await statusOf('POST', url, `${PASSWORD} ${truncated}`, json)).toBe(400)
  }
  const invalid = { ...usuario('ana'), strPwd: `${PASSWORD}${'x'.repeat(72)}` }
  expect(await statusOf('POST', '/api/usuario', invalid)).toBe(400)
  const forged = `${service.adminToken.slice(0, -4)}AAAA`
  tokens.push(forged)
  expect(await statusOf('GET', '/api/perfil', undefined, { token: forged })).toBe(401)
  const bearer = { token: null, headers: { authorization: `Bearer ${service.adminToken}` } }
  expect(await statusOf('GET', '/api/perfil', undefined, bearer)).toBe(200)
  expect(await statusOf('GET', `/api/perfil?search=${PASSWORD.slice(0, 6)}`)).toBe(200)
  expect(await statusOf('GET', `/no/existe?token=${service.adminToken}`)).toBe(404)
  await service.sql`alter table permisos_perfil rename to apartada`
  expect(await statusOf('GET', '/api/permisos')).toBe(500)
  await service.sql`alter table apartada rename to permisos_perfil`
}
await fillLog()

describe('the log', () => {
  it.each([
    ['a password', () => [ADMIN.strPwd, PASSWORD, BAD_PASSWORD]],
    ['a password, escaped', () => [PASSWORD, BAD_PASSWORD].map(encodeURIComponent)],
    ['a hash', () => [...hashes, '$2a$', '$2b$']],
    ['a token or cookie', () => [...tokens, ...tokens.map(lastPart), 'auth_token']],
    ['a captcha token', () => [CAPTCHA_TOKEN]],
    ['image data', () => [IMAGE, IMAGE.slice(0, 24), 'base64,']],
    ['a secret of the service', () => [JWT_SECRET, service.config.CAPTCHA_SECRET]],
    ['a secret of the image host', () => [CLOUDINARY_SECRET, WRONG_CLOUDINARY_SECRET]],
    ['the password of the database', () => [DATABASE_PASSWORD]],
  ])('never contains %s', (_, secrets) => {
    expect(secrets().every((secret) => secret.length > 3)).toBe(true)
    const leaks = service
      .readLog()
      .split('\n')
      .filter((line) => secrets().some((secret) => line.includes(secret)))
    expect(leaks).toEqual([])
  })

  it('has one line for each answered request, with the id in its answer', () => {
    expect(answers.length).toBeGreaterThan(20)
    for (const { status, headers } of answers) {
      const id = headers['x-request-id']
      expect(id).toEqual(expect.any(String))
      const own = lines().filter(({ ms, reqId }) => ms !== undefined && reqId === id)
      expect(own).toEqual([expect.objectContaining({ reqId: id, status, ip: '127.0.0.1' })])
      expect(own[0]).not.toHaveProperty('aborted')
    }
    const ids = answers.map(({ headers }) => headers['x-request-id'])
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('has the method, path, status and time of a request, without its query', () => {
    const { headers } = answers.findLast(({ status }) => status === 404) as AnswerWithHeaders
    const [line] = lines().filter(({ reqId }) => reqId === headers['x-request-id'])
    expect(line).toEqual({
      level: 30,
      time: expect.any(Number),
      pid: process.pid,
      hostname: hostname(),
      reqId: headers['x-request-id'],
      msg: 'request',
      method: 'GET',
      path: '/no/existe',
      status: 404,
      ms: expect.any(Number),
      ip: '127.0.0.1',
    })
    expect(Number.isInteger(line?.ms)).toBe(true)
  })

  it('has one line of less than 1 KB for a path of 15.8 KB whose characters are escaped', async () => {
    const { app, readLog } = await testApp({ DATABASE_URL })
    const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
    const before = readLog()
    const client = connect(Number(port), '127.0.0.1').resume()
    const path = `/${'"'.repeat(15_800)}`
    client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    await once(client, 'close')
    const told = readLog().slice(before.length)
    expect(told.length).toBeLessThan(1024)
    expect(JSON.parse(told)).toMatchObject({ path: path.slice(0, 256), status: 404 })
  })

  it('has lines for health checks and metrics only when they fail', async () => {
    const { app, readLines } = await testApp({ DATABASE_URL, METRICS: 'true' })
    const ask = async (path: string) => (await app.inject(path)).statusCode
    const before = readLines().length
    for (const path of ['/health/live', '/health/ready?x', '/metrics']) {
      expect(await ask(path)).toBe(200)
    }
    app.isStopping = true
    expect(await ask('/health/ready')).toBe(503)
    expect(readLines().slice(before)).toMatchObject([
      { msg: 'request', path: '/health/ready', status: 503 },
    ])
  })

  it('escapes control characters, which a terminal would execute', async () => {
    const strNombrePerfil = 'a\n\u001b[2J\u009b2J\u007f\u202e\u2028'
    const perfil = await call('POST', '/api/perfil', { strNombrePerfil })
    const idPerfil = perfil.body.data.id
    await call('POST', '/api/usuario', { ...usuario('nadie'), idPerfil, imagenBase64: undefined })
    const token = await service.login('nadie', PASSWORD)
    await call('GET', '/api/usuario', undefined, { token })
    expect(service.readLog()).toContain('"perfil":"a\\n\\u001b[2J%C2%9B2J%7F%E2%80%AE%E2%80%A8"')
    // The log has no control character but line feeds.
    expect(service.readLog()).not.toMatch(/[^\n\P{Cc}]/u)
  })

  it('has a line with the error and the request id of an unexpected failure', () => {
    const { headers } = answers.findLast(({ status }) => status === 500) as AnswerWithHeaders
    const errors = lines().filter(({ level }) => Number(level) >= 50)
    expect(errors).toContainEqual({
      level: 50,
      time: expect.any(Number),
      pid: process.pid,
      hostname: hostname(),
      reqId: headers['x-request-id'],
      msg: 'unexpected failure',
      err: {
        type: 'PostgresError',
        message: 'relation "permisos_perfil" does not exist',
        code: '42P01',
        stack: expect.stringContaining('permisos_perfil'),
      },
    })
    expect(errors.map(({ err }) => err)).toContainEqual(
      expect.objectContaining({ code: '23514', constraint: 'usuario_strNombreUsuario_check' }),
    )
  })
})

describe('a client that disconnects', async () => {
  const { app, config, call, adminToken, readLines } = await testApp({ METRICS: 'true' })
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const body = '{"strNombrePerfil":"otro","bitAdministrador":true}'
  const begin = (length: number) =>
    'PUT /api/perfil/1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
    `Cookie: auth_token=${adminToken}\r\nContent-Length: ${length}\r\n\r\n`
  const connections: Socket[] = []
  app.server.on('connection', (socket) => connections.push(socket))
  const ownLines = () =>
    readLines()
      .filter(({ path, route }) => path === '/api/perfil/1' || route === '/api/perfil/:id')
      .toSorted((a, b) => a.msg.localeCompare(b.msg))

  it('after it has sent a complete write does not stop the write, its log lines and its metric', async () => {
    const sql = postgres(config.DATABASE_URL.url, { max: 2, onnotice: () => {} })
    await sql.begin(async (tx) => {
      await tx`lock table usuario in exclusive mode`
      const client = connect(Number(port), '127.0.0.1')
      client.write(begin(body.length) + body)
      await expect.poll(() => countWaiting(sql)).toBeGreaterThan(0)
      const [server] = connections
      client.destroy()
      await expect.poll(() => server?.destroyed).toBe(true)
    })
    await sql.end()
    await expect
      .poll(ownLines)
      .toMatchObject([{ msg: 'request', status: 200, ip: '127.0.0.1', aborted: true }])
    expect((await call('GET', '/api/perfil')).body.data).toMatchObject([
      { id: 1, strNombrePerfil: 'otro' },
    ])
    expect((await app.inject('/metrics')).body).toContain(
      '{method="PUT",route="/api/perfil/:id",status="200",outcome="done"} 1',
    )
  })

  it('before its first request is handled has no write carried out, and no error logged', async () => {
    const sql = postgres(config.DATABASE_URL.url, { max: 1, onnotice: () => {} })
    const modulos = await sql<{ id: number }[]>`
      insert into modulo ("strNombreModulo") select 'M' || n from generate_series(1, 20) n returning id
    `
    for (const { id } of modulos) {
      const client = connect(Number(port), '127.0.0.1')
      await once(client, 'connect')
      client.write(
        `DELETE /api/modulo/${id} HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${adminToken}\r\n\r\n`,
      )
      client.resetAndDestroy()
    }
    // A connection that is already reset has no address, so its line has no `ip`.
    const linesOfReset = () => readLines().filter(({ msg, ip }) => msg === 'request' && !ip)
    await expect.poll(() => linesOfReset().length).toBeGreaterThan(0)
    for (const line of linesOfReset()) expect(line).toMatchObject({ status: 400 })
    expect(readLines().filter(({ level }) => level >= 50)).toEqual([])
    expect(await sql`select * from auditoria where accion = 'delete' and ip is null`).toEqual([])
    await sql.end()
  })

  it.each(['destroy', 'resetAndDestroy'] as const)(
    'before its session is found, by %s, does not stop the write, and leaves a line with its address',
    async (disconnect) => {
      const sql = postgres(config.DATABASE_URL.url, { max: 2, onnotice: () => {} })
      const [modulo] = await sql`
        insert into modulo ("strNombreModulo") values (${disconnect}) returning id
      `
      const path = `/api/modulo/${modulo?.id}`
      await sql.begin(async (tx) => {
        await tx`lock table usuario`
        const client = connect(Number(port), '127.0.0.1')
        client.write(
          `DELETE ${path} HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${adminToken}\r\n\r\n`,
        )
        await expect.poll(() => countWaiting(sql)).toBeGreaterThan(0)
        const server = connections.at(-1)
        client[disconnect]()
        await expect.poll(() => server?.destroyed).toBe(true)
      })
      await expect
        .poll(() => readLines().at(-1))
        .toMatchObject({ path, status: 200, ip: '127.0.0.1', aborted: true })
      expect(await sql`select from modulo where id = ${modulo?.id ?? null}`).toEqual([])
      await sql.end()
    },
  )

  it('while it sends its body leaves a request line with a 400, and no error line', async () => {
    const before = ownLines().length
    const received = once(app.server, 'request')
    const client = connect(Number(port), '127.0.0.1')
    client.write(`${begin(1000)}{`)
    await received
    // These requests give the service time to look up the session of the PUT. After that it waits
    // for the body, and the client may disconnect.
    for (let request = 0; request < 3; request += 1) await call('GET', '/api/perfil/list')
    client.destroy()
    await expect.poll(() => ownLines().length).toBeGreaterThan(before)
    expect(ownLines().filter(({ level }) => level > 40)).toEqual([])
    expect(ownLines()).toContainEqual(
      expect.objectContaining({ msg: 'request', status: 400, aborted: true }),
    )
  })
})

const lastPart = (token: string) => token.split('.').at(-1) ?? ''
