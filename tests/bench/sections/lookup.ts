import type { Bench } from '../bench.js'
import { compare, type Section } from '../compare.js'
import { seedGrupos } from '../data.js'
import { SERVERS } from '../processes.js'
import { makeRequests, planConnections, READS, USUARIOS } from '../workload.js'

/** A module for `--import`, with which the service looks up each session in its own statement. */
const LOOKUP_ALONE = new URL('../references/lookup-alone.js', import.meta.url).href
const ENDPOINTS = ['map', 'modulo/list']

/** Measures how much the service gains by looking up several sessions in one statement. */
export async function lookup(bench: Bench): Promise<Section> {
  const url = await bench.createDatabase('sesiones')
  await seedGrupos(url, [USUARIOS])
  const connections = await planConnections(url, USUARIOS, USUARIOS)
  const servers = {
    service: await bench.startServer(SERVERS.service, { DATABASE_URL: url }),
    reference: await bench.startServer(SERVERS.service, {
      DATABASE_URL: url,
      NODE_OPTIONS: `--import=${LOOKUP_ALONE}`,
    }),
  }
  const rows: Section['rows'] = []
  for (const endpoint of READS.filter(({ name }) => ENDPOINTS.includes(name))) {
    const requests = makeRequests(endpoint, connections, bench.seconds)
    rows.push({ endpoint: endpoint.name, ...(await compare(bench, servers, requests)) })
  }
  await servers.service.stop()
  await servers.reference.stop()
  return {
    about:
      'The service, whose session look-ups share their statements, beside the same service with ' +
      'a statement for each of them.',
    rows,
  }
}
