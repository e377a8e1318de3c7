import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { AnswerWithHeaders } from './answers.js'
import { ADMIN, startImages, testApp } from './app.js'
import { usuario } from './endpoints.js'
import { countWaiting } from './hold.js'
import { SECRETS } from './service.js'

const PASSWORD = 'clave-buena-de-ana'
const BAD_PASSWORD = 'clave-mala'
const CAPTCHA_TOKEN = 'ficha-del-captcha-7319'
const IMAGE = randomBytes(3000).toString('base64')
const CLOUDINARY_SECRET = 'secreto'
const WRONG_CLOUDINARY_SECRET = 'otra-llave-de-nube'

type Service = Awaited<ReturnType<typeof testApp>>
type Line = Record<string, unknown>

const service = await testApp({ LOG_LEVEL: 'trace' })
const DATABASE_URL = service.config.DATABASE_URL.url
const answers: AnswerWithHeaders[] = []
const tokens: string[] = []

const lines = (): Line[] => service.readLines()

/** Sends a request and keeps its answer for the tests below. */
async function call(...request: Parameters<Service['call']>): Promise<AnswerWithHeaders> {
  const answer = await service.call(...request)
  answers.push(answer)
  if (answer.body?.token) tokens.push(answer.body.token)
  return answer
}

const statusOf = async (...request: Parameters<Service['call']>) => (await call(...request)).status

const login = (strNombreUsuario: string, strPwd: string, captchaToken = CAPTCHA_TOKEN) =>
  statusOf('POST', '/api/auth/login', { strNombreUsuario, strPwd, captchaToken }, { token: null })

const conImagen = (nombre: string) =>
  usuario(nombre, { strPwd: PASSWORD, imagenBase64: `data:image/png;base64,${IMAGE}` })

/** Sends requests of all the kinds that the tests below look for in the log. */
async function fillLog() {
  const badHost = await startImages()
  tokens.push(service.adminToken)
  const json = { headers: { 'content-type': 'application/json' } }

  expect(await login(ADMIN.strNombreUsuario, ADMIN.strPwd)).toBe(200)
  expect(await login(ADMIN.strNombreUsuario, BAD_PASSWORD)).toBe(401)
  expect(await statusOf('POST', '/api/usuario', conImagen('ana'))).toBe(200)
  expect(await statusOf('PUT', '/api/usuario/2', conImagen('ana'))).toBe(200)
  expect(await login('ana', PASSWORD)).toBe(200)
  // This violates a constraint, and PostgreSQL's details quote the row with its hash.
  expect(await statusOf('POST', '/api/usuario', conImagen('ana'))).toBe(500)
  // The code does not know this constraint, so its violation is an unexpected failure.
  await service.sql`alter table usuario add check ("strNombreUsuario" <> 'iris')`
  expect(await statusOf('POST', '/api/usuario', conImagen('iris'))).toBe(500)
  // The image host rejects the signature, and quotes the text that was signed.
  const badUrl = `cloudinary://clave:${WRONG_CLOUDINARY_SECRET}@nube?upload_prefix=${badHost.url}`
  const second = await testApp({ DATABASE_URL, CLOUDINARY_URL: badUrl, LOG_LEVEL: 'trace' })
  expect((await second.call('POST', '/api/usuario', conImagen('olga'))).status).toBe(500)
  const readFirst = service.readLog
  service.readLog = () => readFirst() + second.readLog()

  const truncated = `{"strPwd":"${PASSWORD}","captchaToken":"${CAPTCHA_TOKEN}"`
  expect(await statusOf('POST', '/api/auth/login', truncated, json)).toBe(400)
  expect(await statusOf('POST', '/api/auth/login', PASSWORD, json)).toBe(400)
  const invalid = { ...conImagen('ana'), strPwd: `${PASSWORD}${'x'.repeat(72)}` }
  expect(await statusOf('POST', '/api/usuario', invalid)).toBe(400)
  const forged = `${service.adminToken.slice(0, -4)}AAAA`
  tokens.push(forged)
  expect(await statusOf('GET', '/api/perfil', undefined, { token: forged })).toBe(401)
  const bearer = { token: null, headers: { authorization: `Bearer ${service.adminToken}` } }
  expect(await statusOf('GET', '/api/perfil', undefined, bearer)).toBe(200)
  expect(await statusOf('GET', `/no/existe?token=${service.adminToken}&clave=${PASSWORD}`)).toBe(
    404,
  )
  await service.sql`alter table permisos_perfil rename to apartada`
  expect(await statusOf('GET', '/api/permisos')).toBe(500)
  await service.sql`alter table apartada rename to permisos_perfil`
}
await fillLog()

describe('the log', () => {
  it.each([
    ['a password', () => [ADMIN.strPwd, PASSWORD, BAD_PASSWORD]],
    ['a hash', () => ['$2a$', '$2b$']],
    ['a token or cookie', () => [...tokens.map(lastPart), 'auth_token']],
    ['a captcha token', () => [CAPTCHA_TOKEN]],
    ['image data', () => [IMAGE.slice(0, 24), 'base64,']],
    ['a secret of the service', () => [SECRETS.JWT_SECRET, SECRETS.CAPTCHA_SECRET]],
    ['a secret of the image host', () => [CLOUDINARY_SECRET, WRONG_CLOUDINARY_SECRET]],
  ])('never contains %s', (_, secrets) => {
    expect(secrets().every((secret) => secret.length > 3)).toBe(true)
    const leaks = service
      .readLog()
      .split('\n')
      .filter((line) => secrets().some((secret) => line.includes(secret)))
    expect(leaks).toEqual([])
  })

  it('has one line for each answered request, with the id in its answer', () => {
    expect(answers.length).toBeGreaterThan(10)
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

  it('has no line of level info with LOG_LEVEL=audit', async () => {
    const { call, readLines } = await testApp({ DATABASE_URL, LOG_LEVEL: 'audit' })
    await call('GET', '/api/perfil')
    const wrong = { ...ADMIN, strPwd: BAD_PASSWORD, captchaToken: CAPTCHA_TOKEN }
    await call('POST', '/api/auth/login', wrong)
    expect(readLines()).toMatchObject([{ level: 35, msg: 'refused', status: 401 }])
  })

  it('has the first 256 characters of a path', async () => {
    const path = `/${'x'.repeat(15_800)}`
    const { headers } = await service.call('GET', path)
    const [line] = lines().filter(({ reqId }) => reqId === headers['x-request-id'])
    expect(line).toMatchObject({ path: path.slice(0, 256), status: 404 })
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
    await call('POST', '/api/usuario', { ...conImagen('nadie'), idPerfil, imagenBase64: undefined })
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
  const { app, sql, call, adminToken, readLines } = await testApp({ METRICS: 'true' })
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const head = (request: string) =>
    `${request} HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${adminToken}\r\n`
  const connections: Socket[] = []
  app.server.on('connection', (socket) => connections.push(socket))
  const errors = () => readLines().filter(({ level }) => level >= 50)

  it('after it has sent a complete write does not stop the write, its log line and its metric', async () => {
    const [modulo] = await sql`insert into modulo ("strNombreModulo") values ('X') returning id`
    const path = `/api/modulo/${modulo?.id}`
    await sql.begin(async (tx) => {
      // The look-up of the session waits.
      await tx`lock table usuario`
      const client = connect(Number(port), '127.0.0.1')
      client.write(`${head(`DELETE ${path}`)}\r\n`)
      await expect.poll(() => countWaiting(sql)).toBeGreaterThan(0)
      const [server] = connections
      client.resetAndDestroy()
      await expect.poll(() => server?.destroyed).toBe(true)
    })
    await expect
      .poll(() => readLines().at(-1))
      .toMatchObject({ msg: 'request', path, status: 200, ip: '127.0.0.1', aborted: true })
    expect(await sql`select from modulo where "strNombreModulo" = 'X'`).toEqual([])
    expect((await app.inject('/metrics')).body).toContain(
      '{method="DELETE",route="/api/modulo/:id",status="200",outcome="done"} 1',
    )
  })

  it('before its first request is handled has no write carried out, and no error logged', async () => {
    const modulos = await sql<{ id: number }[]>`
      insert into modulo ("strNombreModulo") select 'M' || n from generate_series(1, 20) n returning id
    `
    // An attempt to log in is counted by the address.
    const login = head('POST /api/auth/login')
    for (const request of modulos.flatMap(({ id }) => [head(`DELETE /api/modulo/${id}`), login])) {
      const client = connect(Number(port), '127.0.0.1')
      await once(client, 'connect')
      client.write(`${request}\r\n`)
      client.resetAndDestroy()
    }
    // A connection that is already reset has no address, so its line has no `ip`.
    const linesOfReset = () => readLines().filter(({ msg, ip }) => msg === 'request' && !ip)
    await expect.poll(() => linesOfReset().length).toBeGreaterThan(0)
    for (const line of linesOfReset()) expect(line).toMatchObject({ status: 400 })
    expect(errors()).toEqual([])
    expect(await sql`select * from auditoria where accion = 'delete' and ip is null`).toEqual([])
  })

  it('while it sends its body leaves a request line with a 400, and no error line', async () => {
    const path = '/api/perfil/1'
    const received = once(app.server, 'request')
    const client = connect(Number(port), '127.0.0.1')
    client.write(
      `${head(`PUT ${path}`)}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
    )
    await received
    // These requests give the service time to look up the session of the PUT. After that it waits
    // for the body, and the client may disconnect.
    for (let request = 0; request < 3; request += 1) await call('GET', '/api/perfil/list')
    client.destroy()
    await expect
      .poll(() => readLines().filter((line) => line.path === path))
      .toMatchObject([{ msg: 'request', status: 400, aborted: true }])
    expect(errors()).toEqual([])
  })
})

const lastPart = (token: string) => token.split('.').at(-1) ?? ''
