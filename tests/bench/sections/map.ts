import { strict as assert } from 'node:assert'
import type { Bench } from '../bench.js'
import { authorization, mapPath, mapRequests } from '../data.js'
import { alternate, type Section, spread } from '../measure.js'
import { SERVERS, type Server } from '../processes.js'

const CONNECTIONS = 50
const ROUNDS = 5

const WAYS = {
  service: 'Llavero, enforced',
  client: 'Llavero, AUTHORIZATION=client',
  plain: 'plain way: Fastify + postgres.js',
}
type Way = keyof typeof WAYS
const NAMES = Object.keys(WAYS) as Way[]

/** What every client loads after every login: the permission map of 4.6. */
export async function map({ data, generator, seconds, startServer }: Bench): Promise<Section> {
  const servers: Record<Way, Server> = {
    service: await startServer(SERVERS.service),
    client: await startServer(SERVERS.service, { AUTHORIZATION: 'client' }),
    plain: await startServer(SERVERS.plain),
  }
  const [usuario] = data.lectores
  assert(usuario)
  const maps = await Promise.all(
    Object.values(servers).map(async ({ url }) => {
      const answer = await fetch(url + mapPath(usuario), { headers: authorization(usuario) })
      return answer.json()
    }),
  )
  for (const each of maps) assert.deepEqual(each, maps[0])

  const requests = mapRequests(data.lectores)
  const measureFor = (seconds: number) => async (name: Way) => {
    const { url } = servers[name]
    const job = { kind: 'flood', url, requests, seconds, connections: CONNECTIONS } as const
    const load = await generator.run(job)
    return load.answered / load.seconds
  }
  await alternate(1, NAMES, measureFor(1))
  const results = await alternate(ROUNDS, NAMES, measureFor(seconds))
  for (const server of Object.values(servers)) await server.stop()

  return {
    title: 'Permission map',
    about:
      `${CONNECTIONS} connections, each user the own map (${JSON.stringify(maps[0]).length} bytes), ` +
      `${ROUNDS} alternating rounds of ${seconds} s; median (min–max).`,
    rows: NAMES.map((name) => ({
      way: WAYS[name],
      'requests/s': spread(results[name]),
      'plain way = 1': spread(results[name]).median / spread(results.plain).median,
    })),
  }
}
