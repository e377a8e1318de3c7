import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { cloneDatabase } from '../app.js'
import { killAll, launch } from '../service.js'
import { type Service, startService } from './service.js'

const KILLS = 5
const CLIENTS = 20
/** So many requests that the service cannot keep their unread log lines. */
const UNREAD = 4000
const LONG_PATH = `/api/permisos/${'1'.repeat(1500)}`

let env: { DATABASE_URL: string }
beforeAll(async () => {
  env = { DATABASE_URL: await cloneDatabase() }
})
afterEach(killAll)

const idsOf = ({ lines }: Service, kind: string) =>
  new Set(
    lines()
      .filter(({ msg }) => msg === kind)
      .map(({ reqId }) => reqId),
  )

/** Sends a request; returns the answer's status, id and time, or undefined without an answer. */
async function ask({ address }: Service, method: string, path: string, token = '') {
  try {
    const headers = { cookie: `auth_token=${token}` }
    const response = await fetch(address + path, { method, headers })
    await response.text()
    return { status: response.status, id: response.headers.get('x-request-id'), at: Date.now() }
  } catch {
    return undefined
  }
}

it(`the service has logged every answered write when it is killed ${KILLS} times under load`, async () => {
  for (let kill = 0; kill < KILLS; kill++) {
    const service = await startService(env)
    const token = await service.login()
    const writes: string[] = []
    const reads: { id: string; at: number }[] = []
    const clients = Array.from({ length: CLIENTS }, async () => {
      for (;;) {
        const write = await ask(service, 'DELETE', '/api/permisos/999999', token)
        if (!write) return
        expect(write.status).toBe(200)
        writes.push(write.id ?? '')
        const read = await ask(service, 'GET', '/api/modulo/list', token)
        if (read) reads.push({ id: read.id ?? '', at: read.at })
      }
    })
    await expect.poll(() => reads.length).toBeGreaterThan(CLIENTS)
    await sleep(500 + Math.random() * 100)
    const killedAt = Date.now()
    service.child.kill('SIGKILL')
    await Promise.all(clients)
    await service.ended

    expect(writes.length).toBeGreaterThan(CLIENTS)
    const audited = idsOf(service, 'audit')
    expect(writes.filter((id) => !audited.has(id))).toEqual([])
    // Other lines are written after 50 ms at the latest; a busy machine may need longer.
    const early = reads.filter(({ at }) => at < killedAt - 400)
    expect(early.length).toBeGreaterThan(0)
    const logged = idsOf(service, 'request')
    expect(early.filter(({ id }) => !logged.has(id))).toEqual([])
    const times = service.lines().map(({ time }) => Number(time))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  }
})

describe('a log that nobody reads', () => {
  it('delays no request, takes little memory, and gets a line with the number of dropped lines', async () => {
    const service = await startService(env)
    const before = service.resources().memory
    service.child.stdout.pause()
    let left = UNREAD
    let slowest = 0
    const clients = Array.from({ length: CLIENTS }, async () => {
      while (left-- > 0) {
        const begin = performance.now()
        // A write without a session has two lines, one of the audit and one of the request.
        expect(await ask(service, 'DELETE', LONG_PATH)).toMatchObject({ status: 401 })
        slowest = Math.max(slowest, performance.now() - begin)
      }
    })
    await Promise.all(clients)
    expect(slowest).toBeLessThan(5000)
    expect(service.resources().memory - before).toBeLessThan(100)

    service.child.stdout.resume()
    const notice = () => service.lines().find(({ msg }) => msg === 'log lines dropped')
    await expect.poll(notice).toMatchObject({ level: 40, dropped: expect.any(Number) })
    const kept = () => service.lines().filter(({ route, path }) => route ?? path)
    const total = () => kept().length + Number(notice()?.dropped)
    await expect.poll(total).toBe(2 * UNREAD)
    await ask(service, 'DELETE', '/api/permisos/1')
    await expect.poll(() => service.lines().at(-1)).toMatchObject({ msg: 'request' })
  })

  it('lets the service continue to answer requests after the reader of its output has closed the pipe', async () => {
    const service = await startService(env)
    service.child.stdout.destroy()
    for (let n = 0; n < 10; n++) {
      expect(await ask(service, 'DELETE', '/api/permisos/1')).toMatchObject({ status: 401 })
    }
    service.child.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('a slow reader gets all lines', () => {
  const LINES = 50_000
  const LAST = `{"n":${LINES},"msg":"audit"}\\n`

  it.each([
    ['when the process ends', '', 0, null],
    ['when the process calls process.exit', 'process.exit(3)', 3, null],
    ['when the process ends with an uncaught exception', "throw new Error('nobody')", 1, null],
    [
      'that precede an audit line when the process is killed after it has written the audit line',
      `output.write('${LAST}'); process.kill(process.pid, 'SIGKILL')`,
      null,
      'SIGKILL',
    ],
  ])('%s', async (_, end, code, signal) => {
    const program = `
      import { openOutput } from './dist/http/output.js'
      const output = openOutput(process.stdout)
      process.on('exit', output.end)
      for (let n = 0; n < ${LINES}; n++) output.write('{"n":' + n + ',"msg":"request"}\\n')
      ${end}`
    const launched = launch({}, ['--input-type=module', '--eval', program])
    launched.child.stdout.pause()
    await sleep(200)
    launched.child.stdout.resume()
    expect(await launched.ended).toMatchObject({ code, signal })
    const numbers = launched.lines().map(({ n }) => n)
    expect(numbers.slice(0, LINES)).toEqual(Array.from({ length: LINES }, (_, n) => n))
  })
})
