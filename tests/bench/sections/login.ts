import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { hashSync } from 'bcryptjs'
import type { Bench } from '../bench.js'
import { mapRequests, PASSWORD, type Usuario } from '../data.js'
import { alternate, p99, spread } from '../measure.js'
import { SERVERS } from '../processes.js'
import { atLeast, atMost, type Section } from '../report.js'

const IN_FLIGHT = 20
const MAPS_PER_SECOND = 50
const ROUNDS = 3
/** As many as the service has for hashing, see src/auth/password.ts. */
const THREADS = Math.min(2, availableParallelism())

/** What a login storm does to everybody else, and what it yields. */
export async function login(bench: Bench): Promise<Section> {
  const { data, generator } = bench
  const seconds = bench.seconds * 3
  const { url, stop } = await bench.startServer(SERVERS.service)
  const maps = { url, seconds, perSecond: MAPS_PER_SECOND, requests: mapRequests(data.lectores) }
  const readMaps = () => generator.run({ kind: 'paced', ...maps })
  const requests = data.lectores.map(loginRequest)
  const storm = (forSeconds: number) =>
    generator.run({ kind: 'flood', url, requests, seconds: forSeconds, connections: IN_FLIGHT })

  await readMaps()
  await storm(2)
  const results = await alternate(ROUNDS, ['idle', 'storm', 'bcrypt'] as const, async (name) => {
    if (name === 'bcrypt') return { perSecond: await bcryptAlone(seconds), maps: Number.NaN }
    if (name === 'idle') return { perSecond: Number.NaN, maps: p99((await readMaps()).times) }
    const [logins, { times }] = await Promise.all([storm(seconds), readMaps()])
    return { perSecond: logins.answered / logins.seconds, maps: p99(times) }
  })
  await stop()

  const idle = spread(results.idle.map((result) => result.maps))
  const busy = spread(results.storm.map((result) => result.maps))
  const logins = spread(results.storm.map((result) => result.perSecond))
  const alone = spread(results.bcrypt.map((result) => result.perSecond))
  return {
    title: 'Login storm',
    about:
      `The permission map at ${MAPS_PER_SECOND} requests/s, without and with ${IN_FLIGHT} logins in ` +
      `flight without pause; beside it bcryptjs alone on ${THREADS} threads. ${ROUNDS} alternating ` +
      `rounds of ${seconds} s; median (min–max).`,
    rows: [
      { state: 'idle', 'p99 of the map, ms': idle, 'logins/s': '' },
      { state: `${IN_FLIGHT} logins in flight`, 'p99 of the map, ms': busy, 'logins/s': logins },
      { state: 'bcryptjs alone', 'p99 of the map, ms': '', 'logins/s': alone },
    ],
    goals: [
      atMost('p99 in the storm, 2 × idle + 5 ms', 2 * idle.median + 5, busy.median),
      atLeast('logins/s / bcryptjs alone', 0.9, logins.median / alone.median),
    ],
  }
}

const loginRequest = ({ nombre }: Usuario) => ({
  method: 'POST' as const,
  path: '/api/auth/login',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ strNombreUsuario: nombre, strPwd: PASSWORD, captchaToken: 'humano' }),
})

/** Comparisons a second on THREADS threads. */
async function bcryptAlone(seconds: number) {
  const workerData = { plain: PASSWORD, hash: hashSync(PASSWORD, 10), seconds }
  const rates = await Promise.all(
    Array.from({ length: THREADS }, async () => {
      const worker = new Worker(new URL('../references/bcrypt.js', import.meta.url), { workerData })
      const [rate] = await once(worker, 'message')
      return rate as number
    }),
  )
  return rates.reduce((sum, rate) => sum + rate, 0)
}
