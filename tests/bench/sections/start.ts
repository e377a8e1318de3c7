import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.js'
import { mapRequests } from '../data.js'
import { alternate, mark, ratios, residentMb, type Section, spread } from '../measure.js'
import { SERVERS } from '../processes.js'

const ROUNDS = 5
/** The longest start of the service, relative to the plain way. */
const MAX_START = 1.7
/** The most memory of the service before it has worked, in MB. */
const MAX_IDLE = 95
const WAYS = { service: 'Llavero', plain: 'plain way: Fastify + postgres.js' } as const
type Way = keyof typeof WAYS
const NAMES = Object.keys(WAYS) as Way[]

/** Measures the start of a replica, and its memory before and after it has worked. */
export async function start({ data, generator, seconds, startServer }: Bench): Promise<Section> {
  const requests = mapRequests(data.lectores)
  const results = await alternate(ROUNDS, NAMES, async (name) => {
    const { url, pid, startMs, stop } = await startServer(SERVERS[name])
    await sleep(500)
    const idle = residentMb(pid)
    await generator.run({ kind: 'flood', url, requests, seconds, connections: 50 })
    const worked = residentMb(pid)
    await stop()
    return { startMs, idle, worked }
  })
  const of = (name: Way, what: 'startMs' | 'idle' | 'worked') =>
    results[name].map((result) => result[what])
  const startRatio = ratios(of('service', 'startMs'), of('plain', 'startMs'))
  const idle = spread(of('service', 'idle'))
  return {
    title: 'Start and size',
    about:
      'From the start of the process to the first answered /health/live, with a database that is ' +
      `up to date; resident memory then and after ${seconds} s of permission maps over 50 ` +
      `connections. ${ROUNDS} alternating rounds; median (min–max). Targets: a start of at most ` +
      `${MAX_START} times the plain way's (holds: ${mark(startRatio.median <= MAX_START)}), at ` +
      `most ${MAX_IDLE} MB idle (holds: ${mark(idle.median <= MAX_IDLE)}).`,
    rows: NAMES.map((name) => ({
      way: WAYS[name],
      'start, ms': spread(of(name, 'startMs')),
      'plain way = 1': name === 'service' ? startRatio : '',
      'idle, MB': spread(of(name, 'idle')),
      'after the maps, MB': spread(of(name, 'worked')),
    })),
  }
}
