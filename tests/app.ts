import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hash } from 'bcryptjs'
import type { InjectOptions } from 'fastify'
import postgres from 'postgres'
import { inject } from 'vitest'
import { buildApp } from '../src/app.js'
import { loadConfig } from '../src/config.js'
import { startCaptcha } from '../src/dev/captcha.js'
import { startImageHost } from '../src/dev/imagenes.js'
import type { AnswerWithHeaders } from './answers.js'
import { closeAtEnd } from './cleanup.js'
import { ADMIN, databaseUrl } from './postgres.js'
import { SECRETS } from './service.js'

export { ADMIN }

/** The environment variables that create the administrator ADMIN. */
export const ADMIN_ENV = {
  ADMIN_USERNAME: ADMIN.strNombreUsuario,
  ADMIN_PASSWORD: ADMIN.strPwd,
  ADMIN_EMAIL: ADMIN.strCorreo,
}

/** A PNG of 1 × 1 pixel as a data URL. */
export const PNG =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** The headers that every answer of the API has. */
export const API_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** A line of the log. */
type LogLine = Record<string, any>

/** The URL of the pooler through which the service connects; undefined to connect directly. */
const POOLER_URL = process.env.TEST_POOLER_URL

/**
 * Creates a copy of the migrated database, which has the administrator ADMIN, or of another
 * template; returns its URL. On a server that outlives the tests, it is dropped after them.
 */
export async function cloneDatabase(template = inject('template')) {
  const server = postgres(inject('serverUrl'), { max: 1, onnotice: () => {} })
  const name = `prueba_${randomBytes(6).toString('hex')}`
  await server.unsafe(`create database ${name} template ${template} strategy file_copy`)
  closeAtEnd(async () => {
    if (process.env.TEST_DATABASE_URL) {
      await server.unsafe(`drop database if exists ${name} with (force)`)
    }
    await server.end()
  })
  return databaseUrl(POOLER_URL ?? inject('serverUrl'), name)
}

/** Starts an image host that ends after the tests of the file. Its images are deleted then. */
export async function startImages() {
  const dir = await mkdtemp(join(tmpdir(), 'llavero-imagenes-'))
  const images = await startImageHost(dir)
  closeAtEnd(async () => {
    await images.close()
    await rm(dir, { recursive: true })
  })
  return images
}

/**
 * Builds the production application with a database, a captcha host and an image host of its own.
 * `adminToken` is the token of its administrator, ADMIN. `sql` connects to the same database,
 * beside the application's `pool`. `env` adds environment variables or overrides those below. With
 * `cheapHashes`, new passwords get hashes of the lowest cost, which take a fiftieth of the time.
 */
export async function testApp(
  env: Record<string, string> = {},
  { cheapHashes = true }: { cheapHashes?: boolean } = {},
) {
  const captcha = await startCaptcha()
  const images = await startImages()
  let log = ''
  const logStream = {
    write: (line: string) => {
      log += line
    },
  }
  /** Returns the lines of the log. */
  const readLines = (): LogLine[] =>
    log
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))

  const config = loadConfig({
    DATABASE_URL: env.DATABASE_URL ?? (await cloneDatabase()),
    ...SECRETS,
    CAPTCHA_VERIFY_URL: captcha.url,
    CLOUDINARY_URL: images.cloudinaryUrl,
    LOGIN_RATE_LIMIT: '0',
    ...(POOLER_URL && { DATABASE_PREPARE: 'false' }),
    ...env,
  })
  const { app, pool, passwords } = await buildApp(config, logStream)
  if (cheapHashes) passwords.hash = (plain) => hash(plain, 4)
  const sql = postgres(config.DATABASE_URL.url, {
    max: 10,
    prepare: config.DATABASE_PREPARE === 'true',
    onnotice: () => {},
  })
  closeAtEnd(async () => {
    // Otherwise the application would keep idle connections open for a moment.
    app.server.closeAllConnections()
    await app.close()
    await sql.end()
    await captcha.close()
  })

  const claims = { id: 1, idPerfil: 1, nombre: ADMIN.strNombreUsuario }
  const adminToken: string = app.jwt.sign(claims as never)

  /** Sends a request with the administrator's token, another `token`, or none (null). */
  async function call(
    method: InjectOptions['method'],
    url: string,
    body?: unknown,
    { token = adminToken, headers = {} }: { token?: string | null; headers?: object } = {},
  ): Promise<AnswerWithHeaders> {
    const response = await app.inject({
      method,
      url,
      headers: { ...(token !== null && { cookie: `auth_token=${token}` }), ...headers },
      ...(body !== undefined && { payload: body as object }),
    })
    return {
      status: response.statusCode,
      body: response.body === '' ? undefined : JSON.parse(response.body),
      headers: response.headers,
    }
  }

  /** Logs in and returns the token. */
  async function login(strNombreUsuario: string, strPwd: string): Promise<string> {
    const credentials = { strNombreUsuario, strPwd, captchaToken: 'humano' }
    const { status, body } = await call('POST', '/api/auth/login', credentials, { token: null })
    // While other test files start, the event loop may be delayed so much that the answer is a 503.
    if (body.message?.startsWith('Servicio ocupado')) return login(strNombreUsuario, strPwd)
    if (status !== 200) throw new Error(`login failed: ${JSON.stringify(body)}`)
    return body.token
  }

  return {
    app,
    pool,
    passwords,
    sql,
    config,
    call,
    login,
    adminToken,
    captcha,
    images,
    readLog: () => log,
    readLines,
  }
}
