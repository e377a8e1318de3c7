import { execFile } from 'node:child_process'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { cloneDatabase } from '../app.js'
import { killAll, launch } from '../service.js'
import { type Service, startService } from './service.js'

const CLIENTS = 20
/** So many requests that the service cannot keep their unread log lines. */
const UNREAD = 20_000
/** A path that is longer than the part of it that is logged. */
const LONG_PATH = `/api/usuario/${'1'.repeat(1500)}`

let env: { DATABASE_URL: string; METRICS: string }
beforeAll(async () => {
  env = { DATABASE_URL: await cloneDatabase(), METRICS: 'true' }
})
afterEach(killAll)

/** Sends a request; returns the status of its answer. */
async function ask({ address }: Service, path: string) {
  const response = await fetch(address + path)
  await response.text()
  return response.status
}

/**
 * Sends requests without a session from CLIENTS clients; returns the time of the slowest one in ms.
 */
async function flood(service: Service, requests: number) {
  let left = requests
  let slowest = 0
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (left-- > 0) {
      const begin = performance.now()
      expect(await ask(service, LONG_PATH)).toBe(401)
      slowest = Math.max(slowest, performance.now() - begin)
    }
  })
  await Promise.all(clients)
  return slowest
}

/** Returns the number of dropped lines that the service reports. */
async function countDropped({ address }: Service) {
  const response = await fetch(`${address}/metrics`)
  const metrics = await response.text()
  return Number(/^llavero_log_lines_dropped_total (\d+)$/m.exec(metrics)?.[1])
}

describe('a log that nobody reads', () => {
  it('delays no request, takes little memory, and has each line once or counts it as dropped', async () => {
    const service = await startService(env)
    const before = service.resources().memory
    service.child.stdout.pause()
    expect(await flood(service, UNREAD)).toBeLessThan(5000)
    expect(service.resources().memory - before).toBeLessThan(100)
    const dropped = await countDropped(service)
    expect(dropped).toBeGreaterThan(0)

    service.child.stdout.resume()
    const kept = () => service.lines().filter(({ status }) => status === 401)
    await expect.poll(() => kept().length, { timeout: 20_000 }).toBe(UNREAD - dropped)
    expect(await ask(service, '/api/usuario/1')).toBe(401)
    await expect.poll(() => service.lines().at(-1)).toMatchObject({ path: '/api/usuario/1' })
    expect(await countDropped(service)).toBe(dropped)
  })

  it('does not keep the service from stopping', async () => {
    const service = await startService(env)
    service.child.stdout.pause()
    await flood(service, 1000)
    service.child.kill('SIGTERM')
    const begin = performance.now()
    const exited = new Promise((resolve) => service.child.once('exit', resolve))
    expect(await exited).toBe(0)
    expect(performance.now() - begin).toBeLessThan(9000)
  })
})

it('the service continues to answer, counts the lost lines and stops when the reader of its output has closed the pipe', async () => {
  const service = await startService(env)
  service.child.stdout.destroy()
  await flood(service, 10)
  await sleep(500)
  await flood(service, 100)
  expect(await countDropped(service)).toBeGreaterThanOrEqual(100)
  service.child.kill('SIGTERM')
  expect(await service.ended).toMatchObject({ code: 0, stderr: '' })
})

it('no line is dropped while a disk takes the lines, although the event loop has time for one write in a turn', async () => {
  const file = join(await mkdtemp(join(tmpdir(), 'llavero-log-')), 'log')
  onTestFinished(() => rm(dirname(file), { recursive: true }))
  const program = `
    import { openSync } from 'node:fs'
    import { setImmediate } from 'node:timers/promises'
    import { openDestination } from './dist/http/observation/destination.js'
    const destination = openDestination(openSync('${file}', 'w'))
    const line = 'x'.repeat(299) + '\\n'
    for (let turn = 0; turn < 30; turn++) {
      for (let n = 0; n < 1000; n++) destination.write(line)
      const end = performance.now() + 30
      while (performance.now() < end);
      await setImmediate()
    }
    process.stderr.write(String(destination.dropped))
    await destination.end()`
  const launched = launch({}, ['--input-type=module', '--eval', program])
  expect(await launched.ended).toMatchObject({ code: 0, stderr: '0' })
  expect((await stat(file)).size).toBe(30 * 1000 * 300)
})

it('a full disk is no error, and the lines that it does not take are counted', async () => {
  const program = `
    import { openSync } from 'node:fs'
    import { setTimeout as sleep } from 'node:timers/promises'
    import { openDestination } from './dist/http/observation/destination.js'
    const destination = openDestination(openSync('/dev/full', 'w'))
    destination.write('the first line, which waits\\n')
    await sleep(500)
    for (let n = 0; n < 100; n++) destination.write('x\\n')
    process.stderr.write(String(destination.dropped))
    await destination.end()`
  const launched = launch({}, ['--input-type=module', '--eval', program])
  expect(await launched.ended).toMatchObject({ code: 0, stderr: '100' })
})

it('lines are written again once the output takes them, first those that have waited', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'llavero-salida-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const pipe = join(folder, 'pipe')
  await promisify(execFile)('mkfifo', [pipe])
  const program = `
    import { closeSync, constants, openSync, readFileSync } from 'node:fs'
    import { setTimeout as sleep } from 'node:timers/promises'
    import { openDestination } from './dist/http/observation/destination.js'
    const openReader = () => openSync('${pipe}', constants.O_RDONLY | constants.O_NONBLOCK)
    const reader = openReader()
    const destination = openDestination(openSync('${pipe}', 'w'))
    closeSync(reader)
    destination.write('waits\\n')
    await sleep(500)
    destination.write('is dropped\\n')
    const next = openReader()
    await sleep(500)
    destination.write('is written\\n')
    await destination.end()
    process.stderr.write(destination.dropped + ' ' + readFileSync(next))`
  const launched = launch({}, ['--input-type=module', '--eval', program])
  expect(await launched.ended).toMatchObject({ code: 0, stderr: '1 waits\nis written\n' })
})

it('a slow reader gets all lines before the process exits', async () => {
  const lines = 5000
  // With it, all lines together are larger than what the system keeps of unread output.
  const padding = 'x'.repeat(200)
  const program = `
    import { openDestination } from './dist/http/observation/destination.js'
    const destination = openDestination(process.stdout.fd)
    for (let n = 0; n < ${lines}; n++) destination.write('{"n":' + n + ',"x":"${padding}"}\\n')
    await destination.end()
    process.exit()`
  const launched = launch({}, ['--input-type=module', '--eval', program])
  launched.child.stdout.pause()
  await sleep(200)
  launched.child.stdout.resume()
  expect(await launched.ended).toMatchObject({ code: 0 })
  const numbers = launched.lines().map(({ n }) => n)
  expect(numbers).toEqual(Array.from({ length: lines }, (_, n) => n))
})
