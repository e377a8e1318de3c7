import type { Bench } from './bench.js'
import type { LoadRequest } from './load.js'
import { cpuSeconds } from './measure.js'
import type { Server } from './processes.js'

/** How many connections send requests. BENCH_CONNECTIONS sets another number, of at least 4. */
export const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS || 50)
const ROUNDS = 5

/** One value for the service, and the corresponding value for the reference. */
export interface Pair<T> {
  service: T
  reference: T
}

/** The result of a section of the bench. */
export interface Section {
  /** A description of what is measured. */
  about: string
  /** The rows of the table. */
  rows: Record<string, string>[]
}

/** Returns a description of how `compare` measures. */
export const describeComparison = (seconds: number) =>
  `${CONNECTIONS} connections, ${ROUNDS} alternating rounds of ${seconds} s after a warm-up, ` +
  'median (min–max), ratios within a round. The processor time of a request is the user and ' +
  'system time of the server and of all processes of PostgreSQL. It does not include the load ' +
  'generator. But the generator works on the same cores, so the two values of requests/s differ ' +
  'less than they would without it.'

/**
 * Sends the same requests to both servers in alternating rounds, and calls `prepare` before each
 * measurement. Connection n of CONNECTIONS sends the requests n, n + CONNECTIONS,
 * n + 2 * CONNECTIONS, … over and over. Returns the requests per second, the processor time of a
 * request, and their ratios as cells of a table. The processor time is NaN without /proc.
 */
export async function compare(
  { generator, seconds, postgresPid }: Bench,
  servers: Pair<Server>,
  requests: LoadRequest[],
  prepare = async () => {},
) {
  async function measure({ url, pid }: Server) {
    const cpu = () => cpuSeconds(pid) + cpuSeconds(postgresPid)
    await prepare()
    const before = cpu()
    const load = await generator.run({
      url,
      requests,
      seconds,
      connections: CONNECTIONS,
    })
    return {
      perSecond: load.answered / load.seconds,
      cpuMs: ((cpu() - before) * 1000) / load.answered,
    }
  }
  const measureBoth = async () => ({
    service: await measure(servers.service),
    reference: await measure(servers.reference),
  })

  await measureBoth()
  const rounds: Awaited<ReturnType<typeof measureBoth>>[] = []
  while (rounds.length < ROUNDS) rounds.push(await measureBoth())
  return {
    'requests/s': spread(rounds.map(({ service }) => service.perSecond)),
    'reference requests/s': spread(rounds.map(({ reference }) => reference.perSecond)),
    ratio: spread(rounds.map(({ service, reference }) => service.perSecond / reference.perSecond)),
    'CPU ms': spread(rounds.map(({ service }) => service.cpuMs)),
    'reference CPU ms': spread(rounds.map(({ reference }) => reference.cpuMs)),
    'CPU ratio': spread(rounds.map(({ service, reference }) => service.cpuMs / reference.cpuMs)),
  }
}

/** Returns the median of ROUNDS values, and the smallest and the largest of them. */
function spread(values: number[]) {
  const sorted = values.toSorted((a, b) => a - b).map((value) => Number(value.toPrecision(3)))
  return `${sorted[Math.floor(ROUNDS / 2)]} (${sorted[0]}–${sorted.at(-1)})`
}
