import type { Bench } from './bench.js'
import type { LoadRequest } from './load.js'
import {
  alternate,
  cpuSeconds,
  cpuSecondsOfTree,
  ratios,
  type Spread,
  spread,
  writeCalls,
} from './measure.js'
import type { Server } from './processes.js'

/** How many connections send requests. BENCH_CONNECTIONS sets another number, of at least 4. */
export const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS || 50)
const ROUNDS = 5

/** One value for the service, and the corresponding value for the reference. */
export interface Pair<T> {
  service: T
  reference: T
}

/** One figure of both servers over several rounds, and the service's ratio to the reference. */
export interface Comparison extends Pair<Spread> {
  ratio: Spread
}

/** Returns a description of how `compare` measures, for the `about` of a section. */
export const describeComparison = (seconds: number) =>
  `${CONNECTIONS} connections, ${ROUNDS} alternating rounds of ${seconds} s after a warm-up, ` +
  'median (min–max), ratios within a round. The processor time of a request is the user and ' +
  'system time of the server and of all processes of PostgreSQL. It does not include the load ' +
  'generator. But the generator works on the same cores, so the two values of requests/s differ ' +
  'less than they would without it.'

/**
 * Sends the same requests to both servers in alternating rounds, and calls `prepare` before each
 * measurement. Connection n of CONNECTIONS sends the requests n, n + CONNECTIONS,
 * n + 2 * CONNECTIONS, … over and over. Returns the requests per second, and for one request the
 * processor time in milliseconds and the server's write system calls. The last two are NaN without
 * /proc.
 */
export async function compare(
  { generator, seconds, postgresPid }: Bench,
  servers: Pair<Server>,
  requests: LoadRequest[],
  prepare = async () => {},
) {
  async function measure(way: keyof Pair<Server>) {
    const { url, pid } = servers[way]
    const cpu = () => cpuSeconds(pid) + cpuSecondsOfTree(postgresPid)
    await prepare()
    const before = { cpu: cpu(), writes: writeCalls(pid) }
    const load = await generator.run({
      kind: 'flood',
      url,
      requests,
      seconds,
      connections: CONNECTIONS,
    })
    return {
      perSecond: load.answered / load.seconds,
      cpuMs: ((cpu() - before.cpu) * 1000) / load.answered,
      writes: (writeCalls(pid) - before.writes) / load.answered,
    }
  }
  const ways = ['service', 'reference'] as const
  await alternate(1, ways, measure)
  const rounds = await alternate(ROUNDS, ways, measure)

  function summarize(figure: 'perSecond' | 'cpuMs' | 'writes'): Comparison {
    const service = rounds.service.map((round) => round[figure])
    const reference = rounds.reference.map((round) => round[figure])
    return {
      service: spread(service),
      reference: spread(reference),
      ratio: ratios(service, reference),
    }
  }
  return {
    perSecond: summarize('perSecond'),
    cpuMs: summarize('cpuMs'),
    writes: summarize('writes'),
  }
}
