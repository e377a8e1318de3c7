import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { Agent } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type postgres from 'postgres'
import { beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../src/dev/postgres.js'
import { type Answer, TOO_LARGE } from '../answers.js'
import { cloneDatabase } from '../app.js'
import { connectTo } from '../connect.js'
import { endpoint } from '../endpoints.js'
import { killAll } from '../service.js'
import { login, send } from './client.js'
import { installed, run } from './program.js'
import { type Service, startService } from './service.js'

const CLIENTS = 20

interface Proxy {
  name: string
  program: string
  /** Returns a configuration with replicas on 127.0.0.1:3001 and :3002 and the proxy on :8080. */
  readConfig(): Promise<string>
  args(file: string, folder: string): string[]
  /** Whether a POST may fail when a replica stops, as docs/deployment.md says. */
  losesPosts?: true
  /** The largest body that the proxy forwards, in MiB. */
  largestBody?: number
}

const readDeployed = (name: string) =>
  readFile(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')

/** deploy/nginx.conf within a main configuration that needs neither root nor a system folder. */
async function nginxConfig() {
  return `
error_log stderr;
pid nginx.pid;
events {}
http {
access_log off;
client_body_temp_path body;
proxy_temp_path proxy;
fastcgi_temp_path fastcgi;
uwsgi_temp_path uwsgi;
scgi_temp_path scgi;
${await readDeployed('nginx.conf')}
}
`
}

/** deploy/Caddyfile with addresses on this machine. */
async function caddyConfig() {
  const caddyfile = await readDeployed('Caddyfile')
  return caddyfile
    .replace(/^:(8080|9000) \{/gm, 'http://127.0.0.1:$1 {')
    .replace('app1:3000', '127.0.0.1:3001')
    .replace('app2:3000', '127.0.0.1:3002')
}

const PROXIES: Proxy[] = [
  {
    name: 'nginx',
    program: 'nginx',
    readConfig: nginxConfig,
    args: (file, folder) => ['-p', folder, '-c', file, '-g', 'daemon off;'],
    losesPosts: true,
    largestBody: 32,
  },
  {
    name: 'HAProxy',
    program: 'haproxy',
    readConfig: () => readDeployed('haproxy.cfg'),
    args: (file) => ['-db', '-f', file],
  },
  {
    name: 'Caddy',
    program: 'caddy',
    readConfig: caddyConfig,
    args: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
  },
]

/** Starts the proxy in front of two ports. */
async function startProxy({ program, readConfig, args }: Proxy, ports: number[]) {
  const folder = await mkdtemp(join(tmpdir(), 'llavero-proxy-'))
  // If nginx is started by root, it keeps large bodies here as another user.
  await chmod(folder, 0o755)
  const port = await freePort()
  const file = join(folder, 'proxy.conf')
  const addresses: Record<string, number | undefined> = {
    3001: ports[0],
    3002: ports[1],
    8080: port,
    9000: await freePort(),
  }
  const config = (await readConfig()).replace(
    /127\.0\.0\.1:(\d+)/g,
    (_, name) => `127.0.0.1:${addresses[name]}`,
  )
  await writeFile(file, config)
  const env = { HOME: folder }
  const running = await run(installed(program) ?? '', args(file, folder), {
    port,
    cwd: folder,
    env,
  })
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      await running.stop()
      await rm(folder, { recursive: true })
    },
  }
}

/**
 * Sends reads and writes from CLIENTS clients, over at most as many connections, until `stop` is
 * called. `stop` returns the number of successes and of created modules, and all failures.
 */
function startLoad(url: string, token: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
  const failures: (Answer & { method: string; path: string })[] = []
  let answered = 0
  let modulos = 0
  let running = true

  async function expectSuccess(method: string, path: string, body?: object) {
    const answer = await send(method, url + path, { agent, token, ...(body && { body }) })
    const isGood = answer.status === 200 && answer.body.success === true
    if (isGood) answered += 1
    else failures.push({ method, path, ...answer })
    return isGood
  }

  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let n = 0; running; n++) {
      await expectSuccess('GET', '/api/permisos/mis-permisos/1')
      if (await expectSuccess('POST', '/api/modulo', { strNombreModulo: `M ${client} ${n}` }))
        modulos += 1
      const perfil = { strNombrePerfil: `P ${client} ${n}`, bitAdministrador: false }
      await expectSuccess('PUT', '/api/perfil/2', perfil)
      await sleep(10)
    }
  })
  return {
    stop: async () => {
      running = false
      await Promise.all(clients)
      agent.destroy()
      return { answered, modulos, failures }
    },
  }
}

describe.each(PROXIES)('two replicas behind $name', (proxy) => {
  const isMissing = !installed(proxy.program)
  const skipNote = isMissing ? ` (skipped: ${proxy.program} is not installed)` : ''
  let sql: postgres.Sql
  let DATABASE_URL: string
  const ports: number[] = []
  const replicas: Service[] = []
  let url: string
  let token: string

  beforeAll(async () => {
    if (isMissing) return
    DATABASE_URL = await cloneDatabase()
    sql = connectTo(DATABASE_URL)
    ports.push(await freePort(), await freePort())
    const starts = ports.map((port) => startService({ DATABASE_URL, PORT: `${port}` }))
    replicas.push(...(await Promise.all(starts)))
    await sql`insert into perfil ("strNombrePerfil") values ('Segundo')`
    const running = await startProxy(proxy, ports)
    url = running.url
    token = await login(url)
    return async () => {
      await running.stop()
      await killAll()
    }
  })

  /** Restarts a replica on its port and waits until the proxy sends it requests again. */
  async function restart(index: number) {
    const old = replicas[index] as Service
    old.child.kill('SIGTERM')
    expect(await old.ended).toEqual({ code: 0, signal: null, stderr: '' })
    const fresh = await startService({ DATABASE_URL, PORT: `${ports[index]}` })
    replicas[index] = fresh
    await expect.poll(() => fresh.readLog().includes('/api/'), { timeout: 15_000 }).toBe(true)
  }

  const exception = proxy.losesPosts ? ' but a few POSTs' : ''
  const title = `a rolling restart under load fails no request${exception}${skipNote}`
  it.skipIf(isMissing)(title, async () => {
    const load = startLoad(url, token)
    await sleep(500)
    await restart(0)
    await restart(1)
    await sleep(500)
    const { answered, modulos, failures } = await load.stop()
    const lost = failures.filter(({ method, status }) => method === 'POST' && status === 503)
    expect(failures).toEqual(proxy.losesPosts ? lost : [])
    expect(lost.length).toBeLessThan(CLIENTS)
    expect(answered).toBeGreaterThan(100)
    // If the proxy had repeated a creation, the client would have got the failure of the
    // repetition, and more modules would be stored than were answered with a success.
    const [row] = await sql`select count(*)::int from modulo where "strNombreModulo" like 'M %'`
    expect(row).toEqual({ count: modulos })
  })

  it.skipIf(isMissing)(
    `the proxy does not forward requests for the metrics${skipNote}`,
    async () => {
      const { status, body } = await send('GET', `${url}/metrics`)
      // This is the proxy's own answer, because the service's would be JSON.
      expect(status).toBe(404)
      expect(body).not.toEqual(expect.objectContaining({ statusCode: 404 }))
    },
  )

  /** Sends a new user with an image, in a body of more than so many MiB. */
  const sendImage = (size: number) => {
    const body = { imagenBase64: 'A'.repeat(size * 1024 * 1024) }
    return send('POST', `${url}/api/usuario`, { token, body })
  }

  it.skipIf(isMissing)(`the service itself answers a body above its limit${skipNote}`, async () => {
    expect(await sendImage(20)).toEqual(endpoint('POST /api/usuario').tooLarge)
  })

  it.skipIf(isMissing || !proxy.largestBody)(
    `a body above the proxy's own limit gets a 413 as JSON${skipNote}`,
    async () => {
      expect(await sendImage(proxy.largestBody ?? 0)).toEqual(TOO_LARGE)
    },
  )

  it.skipIf(isMissing)(
    `a client that sends malformed bodies makes no replica count as failed${skipNote}`,
    async () => {
      const { hostname, port } = new URL(url)
      const head = `POST /api/auth/login HTTP/1.1\r\nHost: ${hostname}:${port}\r\n`
      for (let request = 0; request < 20; request += 1) {
        const client = connect(Number(port), hostname)
        client.write(`${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`)
        client.write('5\r\nabcde\r\nzz\r\n')
        // With a 503, the proxy would say that it has no replica left.
        expect(await text(client)).not.toMatch(/^HTTP\/1.1 503 /)
      }
      expect(await send('GET', `${url}/api/perfil`, { token })).toMatchObject({ status: 200 })
    },
  )

  it.skipIf(isMissing)(`while no replica is ready the 503 is JSON${skipNote}`, async () => {
    await killAll()
    const ask = async () => {
      const answer = await fetch(`${url}/api/perfil`)
      const of = (name: string) => answer.headers.get(name)
      return [answer.status, of('retry-after'), of('content-type'), await answer.text()]
    }
    const message = 'El servicio no está disponible. Intente de nuevo más tarde.'
    const body = JSON.stringify({ statusCode: 503, message })
    await expect
      .poll(ask, { timeout: 20_000 })
      .toEqual([503, '5', 'application/json; charset=utf-8', body])
  })
})
