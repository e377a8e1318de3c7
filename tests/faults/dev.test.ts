import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, realpathSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../src/dev/listen.js'
import { startPostgres } from '../../src/dev/postgres.js'
import { PNG } from '../app.js'
import { usuario } from '../endpoints.js'
import { stop as stopProcess } from '../service.js'
import { send } from './client.js'

const COMMAND = [
  ...['--import', import.meta.resolve('tsx')],
  fileURLToPath(new URL('../../src/dev/main.ts', import.meta.url)),
]

/**
 * Returns a free port with a free port after it, which the command uses for the images. Both are
 * below the range from which systems assign ports, so that no other program gets them meanwhile.
 */
async function freePair(): Promise<number> {
  const port = randomInt(10_000, 30_000)
  try {
    for (const each of [port, port + 1]) {
      const { close } = await listen(() => {}, each)
      await close()
    }
    return port
  } catch {
    return freePair()
  }
}

/** The port on which the tests run the command. */
const PORT = await freePair()

/**
 * The folder in which the command is started. Only its owner may read it. If root starts the
 * command, PostgreSQL runs as another user, so it must keep its data elsewhere.
 */
let project: string
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'llavero-dev-'))
})
afterAll(() => rm(project, { recursive: true }))

describe('npm run dev', { timeout: 60_000 }, () => {
  let running: ChildProcess
  let output: string

  afterAll(async () => {
    await stop('SIGINT')
    await rm(realpathSync(join(project, '.llavero/postgres')), { recursive: true })
  })

  function launch(env: Record<string, string>) {
    const { PATH } = process.env
    return spawn(process.execPath, COMMAND, {
      cwd: project,
      env: { PATH, PORT: `${PORT}`, ...env },
    })
  }

  /** Starts the command and waits for the end of its banner. */
  async function start() {
    running = launch({})
    output = ''
    running.stdout?.on('data', (chunk) => {
      output += chunk
    })
    while (!output.includes('Ctrl-C')) {
      expect(running.exitCode).toBe(null)
      await sleep(20)
    }
  }

  async function stop(signal: NodeJS.Signals) {
    await stopProcess(running, signal)
    return running.exitCode
  }

  /** Starts the command, expects that it fails, and returns what it wrote to stderr. */
  async function failure(env: Record<string, string>) {
    const child = launch(env)
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
    expect(code).toBe(1)
    return said
  }

  const call = (method: string, path: string, body?: object, token?: string) =>
    send(method, `http://127.0.0.1:${PORT}${path}`, { body, token })
  const login = (strNombreUsuario: unknown, strPwd: unknown) =>
    call('POST', '/api/auth/login', { strNombreUsuario, strPwd, captchaToken: 'x' })

  it('starts with an administrator, sample users and the documentation page', async () => {
    await start()
    const [, user, password] = /administrator +(\S+) \/ (\S+)/.exec(output) ?? []
    const { token } = (await login(user, password)).body
    const { body } = await call('GET', '/api/modulo/list', undefined, token)
    expect(body.data).toHaveLength(16)
    const [, docs = ''] = /documentation +(\S+)/.exec(output) ?? []
    expect((await fetch(docs)).status).toBe(200)
    const [, database = ''] = /^database +(\S+)/m.exec(output) ?? []
    const sql = postgres(database)
    expect(await sql`select from perfil`).toHaveLength(3)
    await sql.end()
    const { Login } = (await call('GET', '/docs/json')).body.components.schemas
    const example = Object.entries<any>(Login.properties).map(([name, { examples }]) => [
      name,
      examples[0],
    ])
    const answer = await call('POST', '/api/auth/login', Object.fromEntries(example))
    expect(answer.status).toBe(200)

    const [, sample] = /sample users .* \/ (\S+)/.exec(output) ?? []
    const consulta = (await login('consulta', sample)).body.token
    const nuevo = { strNombreModulo: 'NUEVO' }
    expect((await call('POST', '/api/modulo', nuevo, consulta)).status).toBe(403)
  })

  it('writes its log as readable lines, and none of them into the banner', async () => {
    const [first, rest] = output.split('\nLlavero  ')
    expect(first).toMatch(/INFO: administrator set up from ADMIN_\*, as none was active\n/)
    expect(rest).toMatch(
      /\.llavero\/\.\n\n.*INFO: request POST \/api\/auth\/login 200 in \d+ ms\n/s,
    )
    const refused = /AUDIT: refused POST \/api\/modulo 403 in \d+ ms {.*"accion":"bitAgregar"}.*}$/
    await expect
      .poll(() => output.split('\n').slice(-2))
      .toEqual([expect.stringMatching(refused), ''])
    // Without a terminal, the log has no colours.
    expect(output).not.toContain('\u001b')
  })

  it('refuses to start a second time in the same folder, and the first one continues', async () => {
    const said = await failure({ PORT: `${await freePair()}` })
    expect(said).toMatch(/^PostgreSQL does not start in .*PID \d+.*\n.*delete .*\.llavero, .*\n$/)
    expect((await login('admin', 'llavero-admin')).status).toBe(200)
  })

  it.each([
    ['is taken', `${PORT}`],
    ['for the images is taken', `${PORT - 1}`],
  ])('names PORT and HOST when the port %s', async (_, port) => {
    expect(await failure({ PORT: port })).toMatch(/^.*address.*\nPORT and HOST .*\n$/)
  })

  it.each(['abc', '65535', '0', '3e3'])('says what PORT must be instead of %s', async (port) => {
    const [said, hint] = (await failure({ PORT: port })).split('\n')
    expect(said).toBe(`PORT=${port} is no port: it must be a number from 1 to 65534.`)
    expect(hint).toMatch(/^PORT and HOST /)
  })

  it('keeps data, images and sessions after a stop and after a kill', async () => {
    const { token } = (await login('admin', 'llavero-admin')).body
    const nandu = usuario('ñandú', { strPwd: 'secreta', imagenBase64: PNG })
    const { imagenUrl } = (await call('POST', '/api/usuario', nandu, token)).body.data
    expect(await stop('SIGINT')).toBe(0)
    await expect(fetch(imagenUrl)).rejects.toThrow()
    expect(existsSync(join(project, '.llavero/postgres/data/postmaster.pid'))).toBe(false)

    await start()
    await stop('SIGKILL')
    await start()
    expect((await login('ñandú', 'secreta')).status).toBe(200)
    expect((await call('GET', '/api/perfil/list', undefined, token)).status).toBe(200)
    const image = await fetch(imagenUrl)
    expect(image.headers.get('content-type')).toBe('image/png')
    expect(Buffer.from(await image.arrayBuffer()).toString('base64')).toBe(PNG.split(',')[1])
  })

  it('names a variable of the service that is wrong', async () => {
    expect(await stop('SIGTERM')).toBe(0)
    expect(await failure({ LOG_LEVEL: 'loud' })).toMatch(/^LOG_LEVEL/m)
  })
})

it('startPostgres requires the password, applies its settings, and starts again after a kill', async () => {
  const folder = join(project, 'postgres')
  const settings = { fsync: 'off', work_mem: '5MB' }
  const first = await startPostgres({ folder, settings })
  const wrong = postgres(first.url.replace(/:[0-9a-f]{48}@/, ':wrong@'), { max: 1 })
  await expect(wrong`select 1`).rejects.toMatchObject({ code: '28P01' })
  process.kill(first.pid, 'SIGKILL')

  const second = await startPostgres({ folder, settings, port: first.port })
  const sql = postgres(second.url, { max: 1 })
  expect(await sql`show work_mem`).toEqual([{ work_mem: '5MB' }])
  expect(await sql`show listen_addresses`).toEqual([{ listen_addresses: '127.0.0.1' }])
  await sql.end()
  await second.stop()
  await rm(second.folder, { recursive: true })
})
