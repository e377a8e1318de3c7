import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import { startImageHost } from '../src/dev/imagenes.js'
import { logOptions } from '../src/log.js'
import { ADMIN, type Answer, JWT_SECRET, testApp } from './app.js'
import { closeAtEnd } from './cleanup.js'

const PASSWORD = 'contraseña-buena-de-ana'
const BAD_PASSWORD = 'contraseña-mala'
const CAPTCHA_TOKEN = 'ficha-del-captcha-7319'
const IMAGE = randomBytes(3000).toString('base64')
const CLOUDINARY_SECRET = 'secreto'
const WRONG_CLOUDINARY_SECRET = 'otra-llave-de-nube'

type Service = Awaited<ReturnType<typeof testApp>>
type Line = Record<string, unknown>

const test = await testApp({ LOG_LEVEL: 'trace' })
const answers: Answer[] = []
const hashes: string[] = []
const tokens: string[] = []

const lines = (): Line[] =>
  test
    .readLog()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

/** A request whose answer is kept for the checks below. */
async function call(...request: Parameters<Service['call']>): Promise<Answer> {
  const answer = await test.call(...request)
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

/** Does all that the log is to tell of. */
async function fillLog() {
  const badHost = await startImageHost()
  closeAtEnd(badHost.close)
  tokens.push(test.adminToken)
  const json = { headers: { 'content-type': 'application/json' } }

  expect(await login(ADMIN.strNombreUsuario, ADMIN.strPwd)).toBe(200)
  expect(await login(ADMIN.strNombreUsuario, BAD_PASSWORD)).toBe(401)
  expect(await login('nadie', BAD_PASSWORD)).toBe(401)
  expect(await login(ADMIN.strNombreUsuario, ADMIN.strPwd, 'rechazar')).toBe(400)

  expect(await statusOf('POST', '/api/usuario', usuario('ana'))).toBe(200)
  expect(await statusOf('PUT', '/api/usuario/2', usuario('ana'))).toBe(200)
  expect(await login('ana', PASSWORD)).toBe(200)
  // Constraint violations, whose details quote the row with its hash.
  expect(await statusOf('POST', '/api/usuario', usuario('ana'))).toBe(500)
  expect(await statusOf('PUT', '/api/usuario/2', usuario(ADMIN.strNombreUsuario))).toBe(500)
  expect(await statusOf('POST', '/api/usuario', { ...usuario('eva'), idPerfil: 999 })).toBe(500)
  expect(await statusOf('POST', '/api/modulo', { strNombreModulo: 'perfil' })).toBe(200)
  // A violation that the code does not know: the unexpected failure.
  await test.app.sql`alter table usuario add check ("strNombreUsuario" <> 'iris')`
  expect(await statusOf('POST', '/api/usuario', usuario('iris'))).toBe(500)
  expect(await statusOf('PUT', '/api/usuario/2', usuario('iris'))).toBe(500)
  // The image host refuses our signature, and quotes what was signed.
  const badUrl = `cloudinary://clave:${WRONG_CLOUDINARY_SECRET}@nube?upload_prefix=${badHost.url}`
  const { databaseUrl } = test.config
  const second = await testApp({
    DATABASE_URL: databaseUrl,
    CLOUDINARY_URL: badUrl,
    LOG_LEVEL: 'trace',
  })
  expect((await second.call('POST', '/api/usuario', usuario('olga'))).status).toBe(500)
  const readFirst = test.readLog
  test.readLog = () => readFirst() + second.readLog()

  for (const url of ['/api/auth/login', '/api/usuario', '/api/modulo']) {
    const truncated = `{"strNombreUsuario":"ana","strPwd":"${PASSWORD}","captchaToken":"${CAPTCHA_TOKEN}"`
    expect(await statusOf('POST', url, truncated, json)).toBe(400)
    expect(await statusOf('POST', url, `${PASSWORD} ${truncated}`, json)).toBe(400)
  }
  const invalid = { ...usuario('ana'), strPwd: `${PASSWORD}${'x'.repeat(72)}` }
  expect(await statusOf('POST', '/api/usuario', invalid)).toBe(400)
  const forged = `${test.adminToken.slice(0, -4)}AAAA`
  tokens.push(forged)
  expect(await statusOf('GET', '/api/perfil', undefined, { token: forged })).toBe(401)
  const bearer = { authorization: `Bearer ${test.adminToken}` }
  expect(await statusOf('GET', '/api/perfil', undefined, { token: null, headers: bearer })).toBe(
    200,
  )
  expect(await statusOf('GET', `/api/perfil?search=${PASSWORD.slice(0, 6)}`)).toBe(200)
  expect(await statusOf('GET', `/no/existe/%zz?token=${test.adminToken}`)).toBe(400)
  expect(await statusOf('GET', `/no/existe?token=${test.adminToken}`)).toBe(404)
  await test.app.sql`alter table permisos_perfil rename to apartada`
  expect(await statusOf('GET', '/api/permisos')).toBe(500)
  expect(await statusOf('GET', '/health/live')).toBe(200)
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
    ['a secret of ours', () => [JWT_SECRET, test.config.captchaSecret]],
    ['a secret of the image host', () => [CLOUDINARY_SECRET, WRONG_CLOUDINARY_SECRET]],
    ['the password of the database', () => [new URL(test.config.databaseUrl).password]],
  ])('never holds %s', (_, secrets) => {
    expect(secrets().every((secret) => secret.length > 3)).toBe(true)
    const leaks = test
      .readLog()
      .split('\n')
      .filter((line) => secrets().some((secret) => line.includes(secret)))
    expect(leaks).toEqual([])
  })

  it('has one line for each answered request, under the id that was answered', () => {
    expect(answers.length).toBeGreaterThan(20)
    for (const { status, headers } of answers) {
      const id = headers['x-request-id']
      expect(id).toEqual(expect.any(String))
      const own = lines().filter(({ msg, reqId }) => msg === 'request' && reqId === id)
      expect(own).toEqual([expect.objectContaining({ reqId: id, status, ip: '127.0.0.1' })])
      expect(own[0]).not.toHaveProperty('aborted')
    }
    const ids = answers.map(({ headers }) => headers['x-request-id'])
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('says of a request what was asked and how it ended, without its query', () => {
    const { headers } = answers.findLast(({ status }) => status === 404) as Answer
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

  it('tells an unexpected failure with its cause, and its request', () => {
    const { headers } = answers.findLast(({ status }) => status === 500) as Answer
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

  it('tells why the image host failed, as a warning', () => {
    expect(lines().filter(({ msg }) => msg === 'upload')).toEqual([
      expect.objectContaining({
        level: 40,
        err: {
          type: 'Error',
          message: expect.stringMatching(/^image host: .+ \(401\)$/),
          stack: expect.any(String),
        },
      }),
    ])
  })
})

describe('an error in the log', () => {
  const { err: serialize } = logOptions('info').serializers

  it('has its causes, and of nothing what it was sent', () => {
    const cause = Object.assign(new Error('why'), {
      code: 'X1',
      detail: 'the row',
      query: 'select',
    })
    const error = Object.assign(new TypeError('what', { cause }), { constraint_name: 'unico' })
    const { stack, cause: inner } = error as { stack: string; cause: unknown }
    expect(serialize(error)).toEqual({
      type: 'TypeError',
      message: 'what',
      code: undefined,
      constraint: 'unico',
      stack,
      cause: { type: 'Error', message: 'why', code: 'X1', stack: (inner as Error).stack },
    })
    expect(serialize(new Error('alone'))).not.toHaveProperty('cause')
  })

  it('that is none shows its type alone', () => {
    expect(serialize('texto')).toEqual({ type: 'string', message: 'not an error', stack: '' })
    expect(serialize(Object.assign(new Error('x'), { stack: undefined })).stack).toBe('')
  })
})

const lastPart = (token: string) => token.split('.').at(-1) ?? ''
