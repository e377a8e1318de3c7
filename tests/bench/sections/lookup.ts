import { strict as assert } from 'node:assert'
import type { Bench } from '../bench.js'
import { compare, describeComparison } from '../compare.js'
import { authorization, mapRequests } from '../data.js'
import type { Section } from '../measure.js'
import { LOOKUP, LOOKUP_ALONE, SERVERS } from '../processes.js'

/** Measures how much the service gains by looking up several sessions in one statement. */
export async function lookup(bench: Bench): Promise<Section> {
  const { batchLookups } = await import(LOOKUP)
  assert(batchLookups, 'references/lookup-alone.js replaces a function that no longer exists')
  const servers = {
    service: await bench.startServer(SERVERS.service),
    reference: await bench.startServer(SERVERS.service, {
      NODE_OPTIONS: `--import=${LOOKUP_ALONE}`,
    }),
  }
  const endpoints = {
    map: mapRequests(bench.data.lectores),
    'modulo/list': bench.data.lectores.map((usuario) => ({
      path: '/api/modulo/list',
      headers: authorization(usuario),
    })),
  }
  const rows: Section['rows'] = []
  for (const [endpoint, requests] of Object.entries(endpoints)) {
    const { perSecond, cpuMs } = await compare(bench, servers, requests)
    rows.push({
      endpoint,
      'requests/s': perSecond.service,
      'alone requests/s': perSecond.reference,
      ratio: perSecond.ratio,
      'CPU ms': cpuMs.service,
      'alone CPU ms': cpuMs.reference,
      'CPU ratio': cpuMs.ratio,
    })
  }
  await servers.service.stop()
  await servers.reference.stop()
  return {
    title: 'Session look-up',
    about:
      'The service, whose session look-ups share their statements, beside the same service with ' +
      `a statement for each of them. ${describeComparison(bench.seconds)}`,
    rows,
  }
}
