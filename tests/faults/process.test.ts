import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { MIGRATION_LOCK } from '../../src/database/migrations.js'
import { VERSION } from '../../src/version.js'
import { READY } from '../answers.js'
import { ADMIN, cloneDatabase } from '../app.js'
import { startHangingCaptcha } from '../captcha.js'
import { connectTo } from '../connect.js'
import { startDatabaseProxy } from '../database-proxy.js'
import { killAll, launch, SECRETS, start as startProcess } from '../service.js'
import { CERTIFICATE } from '../tls.js'
import { startService } from './service.js'

const CREDENTIALS = JSON.stringify({ ...ADMIN, captchaToken: 'humano' })
/** A login as the bytes of an HTTP request. */
const LOGIN =
  'POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
  `Content-Length: ${CREDENTIALS.length}\r\n\r\n${CREDENTIALS}`
const DONE = { code: 0, signal: null, stderr: '' }

afterEach(killAll)

/** Creates a database, migrated or from `template`; returns its URL and a connection to it. */
async function useDatabase(template?: string) {
  const url = await cloneDatabase(template)
  return { url, sql: connectTo(url) }
}

describe('a start', () => {
  const DATABASE_URL = 'postgres://u:clave-de-base@127.0.0.1:1/d'

  it.each([
    [
      'wrong variables',
      // The SDK of the image host could read CLOUDINARY_URL earlier, and throw an error of its own.
      { ...SECRETS, DATABASE_URL, JWT_SECRET: 'corto-y-secreto', CLOUDINARY_URL: 'https://x' },
      /^llavero cannot start\nJWT_SECRET must be .+\nCLOUDINARY_URL must be .+\n$/,
    ],
    [
      'no database',
      // postgres.js throws if it reads `any` from the address or from the last variable.
      {
        ...SECRETS,
        DATABASE_URL: `${DATABASE_URL}?target_session_attrs=any`,
        PORT: '0',
        PGTARGETSESSIONATTRS: 'any',
      },
      /no host of the database serves: 127\.0\.0\.1:1 .*ECONNREFUSED/,
      ['the service starts'],
    ],
  ])(
    'with %s ends with code 1 and says why, but no secret',
    async (_, env, message, logged = []) => {
      const { ended, lines } = launch(env)
      const { stderr, ...end } = await ended
      const log = lines().map(({ msg }) => msg)
      expect({ ...end, log }).toEqual({ code: 1, signal: null, log: logged })
      expect(stderr).toMatch(message)
      expect(stderr).not.toMatch(/clave-de-base|corto-y-secreto/)
    },
  )

  it('accepts with sslmode=verify-full only a certificate that names the host', async () => {
    const { url } = await useDatabase()
    const proxy = await startDatabaseProxy(new URL(url), { tls: true })
    const folder = await mkdtemp(join(tmpdir(), 'llavero-tls-'))
    onTestFinished(async () => {
      await proxy.stop()
      await rm(folder, { recursive: true })
    })
    // The certificate is signed by itself and names `localhost`.
    const NODE_EXTRA_CA_CERTS = join(folder, 'authority.pem')
    await writeFile(NODE_EXTRA_CA_CERTS, CERTIFICATE.cert)
    const environment = (host: string) => {
      const address = new URL(proxy.url)
      address.hostname = host
      address.searchParams.set('sslmode', 'verify-full')
      return { ...SECRETS, PORT: '0', NODE_EXTRA_CA_CERTS, DATABASE_URL: address.href }
    }
    await startProcess(environment('localhost'))
    const { code, stderr } = await launch(environment('127.0.0.1')).ended
    expect(code).toBe(1)
    expect(stderr).toContain('does not match certificate')
  })

  it('creates schema and administrator once, and logs no secret, when several processes start on an empty database', async () => {
    const { url, sql } = await useDatabase('template0')
    const env = { DATABASE_URL: url, DATABASE_POOL_MAX: '2' }
    const started = await Promise.all(Array.from({ length: 5 }, () => startService(env)))
    const ready = await Promise.all(started.map(({ call }) => call('GET', '/health/ready')))
    expect(ready).toEqual(Array(5).fill(READY))

    const rows = await sql`
      select "strNombreUsuario" as nombre, "bitAdministrador" as flag, (
        select count(*)::integer from permisos_perfil where "idPerfil" = perfil.id
      ) as permisos
      from usuario right join perfil on perfil.id = "idPerfil"
    `
    expect(rows).toEqual([{ nombre: ADMIN.strNombreUsuario, flag: true, permisos: 4 }])
    const starts = { msg: 'the service starts', version: VERSION, node: process.version }
    for (const { lines, readLog } of started) {
      expect(lines()[0]).toMatchObject(starts)
      for (const secret of [ADMIN.strPwd, ...Object.values(SECRETS), new URL(url).password]) {
        expect(readLog()).not.toContain(secret)
      }
    }

    for (const { child } of started) child.kill('SIGTERM')
    expect(await Promise.all(started.map(({ ended }) => ended))).toEqual(Array(5).fill(DONE))
  })
})

it('a crash ends with code 1 and says so', async () => {
  const { url } = await useDatabase()
  // This module calls an unknown function 2 s after the process has started.
  const crash = 'data:text/javascript,setTimeout(()=>estalla(),2000)'
  const { ended } = await startService({ DATABASE_URL: url, NODE_OPTIONS: `--import=${crash}` })
  const { stderr, ...end } = await ended
  expect(end).toEqual({ code: 1, signal: null })
  expect(stderr).toMatch(/^llavero has crashed\nReferenceError: estalla is not defined\n/)
})

describe('a signal', () => {
  let url: string
  let captcha: Awaited<ReturnType<typeof startHangingCaptcha>>

  beforeAll(async () => {
    url = (await useDatabase()).url
    captcha = await startHangingCaptcha()
  })

  const start = () => startService({ DATABASE_URL: url, CAPTCHA_VERIFY_URL: captcha.url })

  /** Opens a connection; `answers` returns the answers that have arrived on it. */
  async function open(address: string) {
    const socket = connect(Number(new URL(address).port), '127.0.0.1')
    await once(socket, 'connect')
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.on('error', () => {})
    const answers = () => received.split(/(?=HTTP\/1\.1 \d)/).filter(Boolean)
    return { socket, answers }
  }

  /** Returns whether the service refuses a new connection. */
  const isRefused = (address: string) =>
    open(address).then(
      ({ socket }) => {
        socket.destroy()
        return false
      },
      (error) => error.code === 'ECONNREFUSED',
    )
  const expectRefusal = (address: string) =>
    expect.poll(() => isRefused(address), { timeout: 5000, interval: 20 }).toBe(true)

  it('makes the service finish the requests in flight, answer 503 at /health/ready and refuse new connections', async () => {
    const { child, address, ended } = await start()
    const busy = await open(address)
    captcha.isHanging = true
    busy.socket.write(LOGIN)
    await expect.poll(() => captcha.waiting.length).toBe(1)

    child.kill('SIGTERM')
    await expectRefusal(address)
    // This request uses the open connection and waits for the login before it.
    busy.socket.write('GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n')
    captcha.isHanging = false
    captcha.waiting.pop()?.end('{"success":true}')

    expect(await ended).toEqual(DONE)
    const [login, ready] = busy.answers()
    expect(login).toMatch(/^HTTP\/1\.1 200 .*\{"success":true,"token":"ey.*\}$/s)
    expect(ready).toMatch(
      /^HTTP\/1\.1 503 .*\{"statusCode":503,"message":"Servicio no disponible\. Intente de nuevo más tarde\."\}$/s,
    )
  })

  it('makes the service answer one more request on an idle connection and then close it', async () => {
    const { child, address, ended } = await start()
    const { socket, answers } = await open(address)
    const ask = () => socket.write('GET /api/modulo/list HTTP/1.1\r\nHost: x\r\n\r\n')
    ask()
    await expect.poll(() => answers().length).toBe(1)
    child.kill('SIGTERM')
    await expectRefusal(address)
    ask()
    await once(socket, 'close')
    const [first, second] = answers()
    expect(first).toMatch(/^HTTP\/1\.1 401 .*\r\nConnection: keep-alive\r\n/is)
    expect(second).toMatch(/^HTTP\/1\.1 401 .*\r\nConnection: close\r\n/is)
    expect(await ended).toEqual(DONE)
  })

  it('makes the service close a connection after an answer or a body that takes longer than idle ones are kept', async () => {
    const { child, ended, address } = await start()
    const [busy, refused, unknown] = [await open(address), await open(address), await open(address)]
    captcha.isHanging = true
    busy.socket.write(LOGIN)
    refused.socket.write('POST /api/perfil HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{')
    unknown.socket.write('POST /nada HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{')
    await expect.poll(() => captcha.waiting.length).toBe(1)
    child.kill('SIGTERM')
    await sleep(3000)
    captcha.isHanging = false
    captcha.waiting.pop()?.end('{"success":true}')
    refused.socket.write('}')
    unknown.socket.write('}')
    const answers = () => [busy, refused, unknown].flatMap((client) => client.answers())
    await expect.poll(() => answers().length).toBe(3)
    const since = performance.now()
    expect(await ended).toEqual(DONE)
    expect(performance.now() - since).toBeLessThan(2000)
    expect(answers()).toEqual([
      expect.stringMatching(/^HTTP.1.1 200 .*\r\nConnection: close\r\n/is),
      expect.stringMatching(/^HTTP.1.1 401 .*\r\nConnection: close\r\n/is),
      expect.stringMatching(/^HTTP.1.1 404 .*\r\nConnection: close\r\n/is),
    ])
  })

  it('ends the process with code 0 within 10 s while connections hang', async () => {
    const { child, address, ended } = await start()
    await open(address)
    const head = 'POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n'
    const unfinished = [await open(address), await open(address)]
    unfinished[0]?.socket.write(head)
    unfinished[1]?.socket.write(`${head}Content-Type: application/json\r\n\r\n{`)
    const since = performance.now()
    child.kill('SIGTERM')
    expect(await ended).toEqual(DONE)
    expect(performance.now() - since).toBeLessThan(10_000)
  })

  it('ends the process, also if others follow it, with one log line that names it', async () => {
    const { child, ended, lines } = await start()
    const stops = () => lines().filter(({ msg }) => msg === 'the service stops')
    child.kill('SIGINT')
    await expect.poll(stops).toEqual([expect.objectContaining({ level: 30, signal: 'SIGINT' })])
    child.kill('SIGTERM')
    child.kill('SIGINT')
    expect(await ended).toEqual(DONE)
    expect(stops()).toHaveLength(1)
  })

  it('ends the process, with one log line that says so, while the process waits for the lock of the migrations', async () => {
    const { url, sql } = await useDatabase()
    // While the test holds this lock, the process waits before its migrations.
    await sql`select pg_advisory_lock(${MIGRATION_LOCK})`
    const { child, ended, lines } = launch({ ...SECRETS, DATABASE_URL: url, PORT: '0' })
    const messages = () => lines().map(({ msg }) => msg)
    await expect.poll(messages).toEqual(['the service starts'])
    child.kill('SIGTERM')
    expect(await ended).toEqual(DONE)
    expect(messages()).toEqual(['the service starts', 'the service stops'])
  })
})
