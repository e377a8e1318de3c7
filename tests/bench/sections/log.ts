import type { Bench } from '../bench.js'
import { compare, describeComparison } from '../compare.js'
import { mapRequests } from '../data.js'
import { mark, type Section } from '../measure.js'
import { SERVERS } from '../processes.js'

/** The most processor time of a request with its log line, relative to one without. */
const TARGET = 1.15

/** Measures how much processor time the log line of each request costs. */
export async function log(bench: Bench): Promise<Section> {
  const servers = {
    service: await bench.startServer(SERVERS.service, { LOG_LEVEL: 'info' }),
    reference: await bench.startServer(SERVERS.service, { LOG_LEVEL: 'warn' }),
  }
  const { perSecond, cpuMs, writes } = await compare(
    bench,
    servers,
    mapRequests(bench.data.lectores),
  )
  await servers.service.stop()
  await servers.reference.stop()
  return {
    title: 'Log',
    about:
      'The permission map, with the log in a file. The time of a write system call differs much ' +
      'between machines, so the table also has the number of calls per request. ' +
      describeComparison(bench.seconds),
    rows: [
      {
        level: 'info',
        'requests/s': perSecond.service,
        'write calls': writes.service,
        'CPU ms': cpuMs.service,
        'warn = 1': cpuMs.ratio,
        'at most': TARGET,
        holds: mark(cpuMs.ratio.median <= TARGET),
      },
      {
        level: 'warn',
        'requests/s': perSecond.reference,
        'write calls': writes.reference,
        'CPU ms': cpuMs.reference,
      },
    ],
  }
}
