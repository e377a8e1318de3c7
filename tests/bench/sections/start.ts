import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.js'
import { mapRequests } from '../data.js'
import { alternate, residentMb, type Section, spread } from '../measure.js'
import { SERVERS } from '../processes.js'

const ROUNDS = 3
const WAYS = { service: 'Llavero', plain: 'plain way: Fastify + postgres.js' } as const
type Way = keyof typeof WAYS
const NAMES = Object.keys(WAYS) as Way[]

/** What a replica costs before it does anything, and after it worked. */
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
    spread(results[name].map((result) => result[what]))
  return {
    title: 'Start and size',
    about:
      'From the start of the process to the first answered /health/live, with a database that is ' +
      `up to date; resident memory then and after ${seconds} s of permission maps over 50 ` +
      `connections. ${ROUNDS} alternating rounds; median (min–max).`,
    rows: NAMES.map((name) => ({
      way: WAYS[name],
      'start, ms': of(name, 'startMs'),
      'idle, MB': of(name, 'idle'),
      'after the maps, MB': of(name, 'worked'),
    })),
  }
}
