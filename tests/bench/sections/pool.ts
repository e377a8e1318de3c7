import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Bench } from '../bench.js'
import { alternate, mark, ratios, type Section, spread } from '../measure.js'
import { stopAtExit } from '../processes.js'

const FILE = fileURLToPath(new URL('../queries.js', import.meta.url))
const ROUNDS = 5
const WAYS = {
  service: 'the pool of the service',
  driver: 'postgres.js, max_pipeline: 0',
}
type Way = keyof typeof WAYS
const NAMES = Object.keys(WAYS) as Way[]
/** The most processor time of a query through the pool, relative to the driver alone. */
const TARGET = 1.25

/**
 * Measures the processor time of a query through the pool, beside that of its driver. The
 * difference is the cost of the pool's own code.
 */
export async function pool({ env, seconds }: Bench): Promise<Section> {
  const processes = {
    service: startProcess('service', env),
    driver: startProcess('driver', env),
  }

  async function measure(way: Way) {
    processes[way].send(seconds)
    const [result] = await once(processes[way], 'message')
    const { queries, cpuSeconds } = result as { queries: number; cpuSeconds: number }
    return { perSecond: queries / seconds, cpu: (cpuSeconds * 1e6) / queries }
  }
  await alternate(1, NAMES, measure)
  const results = await alternate(ROUNDS, NAMES, measure)
  for (const child of Object.values(processes)) child.kill()

  const cpu = (way: Way) => results[way].map((result) => result.cpu)
  const ratio = ratios(cpu('service'), cpu('driver'))
  return {
    title: 'Pool',
    about:
      '`select $1` over 10 connections at once; processor time of the process that queries, user ' +
      `and system. ${ROUNDS} alternating rounds of ${seconds} s; median (min–max).`,
    rows: NAMES.map((way) => ({
      way: WAYS[way],
      'queries/s': spread(results[way].map(({ perSecond }) => perSecond)),
      'CPU of a query, µs': spread(cpu(way)),
      'driver = 1': way === 'service' ? ratio : '',
      'at most': way === 'service' ? TARGET : '',
      holds: way === 'service' ? mark(ratio.median <= TARGET) : '',
    })),
  }
}

function startProcess(way: Way, env: Record<string, string>) {
  // The child runs without this process's TypeScript loader.
  const child = fork(FILE, [way], { env: { ...process.env, ...env }, execArgv: [] })
  stopAtExit(child)
  return child
}
