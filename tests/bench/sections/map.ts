import { strict as assert } from 'node:assert'
import type { Bench } from '../bench.js'
import { authorization, mapPath, mapRequests } from '../data.js'
import { alternate, cpuMs, databaseCpuMs, spread } from '../measure.js'
import { SERVERS, type Server } from '../processes.js'
import { atLeast, type Section } from '../report.js'

const CONNECTIONS = 50
const ROUNDS = 5

const WAYS = {
  service: 'Llavero, enforced',
  client: 'Llavero, AUTHORIZATION=client',
  plain: 'plain way: Fastify + postgres.js',
  oneRead: 'one primary-key read, constant body',
  constant: 'constant body (the ceiling)',
  express: 'Express 5 + Sequelize',
}
type Way = keyof typeof WAYS
const NAMES = Object.keys(WAYS) as Way[]

/** What every client loads after every login: the permission map of 4.6. */
export async function map(bench: Bench): Promise<Section> {
  const { data, generator, seconds } = bench
  const servers = {} as Record<Way, Server>
  for (const name of NAMES) {
    const file = name === 'client' ? SERVERS.service : SERVERS[name]
    servers[name] = await bench.startServer(
      file,
      name === 'client' ? { AUTHORIZATION: 'client' } : {},
    )
  }
  const requests = mapRequests(data.lectores)

  const measureFor = (seconds: number) => async (name: Way) => {
    const { url, pid } = servers[name]
    await verify(bench, name, url)
    const used = () =>
      [cpuMs(pid), databaseCpuMs(bench.database.pid), cpuMs(generator.pid)] as const
    const before = used()
    const job = { kind: 'flood', url, requests, seconds, connections: CONNECTIONS } as const
    const { answered, ...load } = await generator.run(job)
    const after = used()
    return {
      perSecond: answered / load.seconds,
      server: (after[0] - before[0]) / answered,
      database: (after[1] - before[1]) / answered,
      generator: (after[2] - before[2]) / answered,
    }
  }
  await alternate(1, NAMES, measureFor(1))
  const results = await alternate(ROUNDS, NAMES, measureFor(seconds))
  for (const server of Object.values(servers)) await server.stop()

  const perSecond = (name: Way) => spread(results[name].map((result) => result.perSecond))
  const against = (name: Way, other: Way) => perSecond(name).median / perSecond(other).median
  return {
    title: 'Permission map',
    about:
      `${CONNECTIONS} connections, each user the own map (${bench.mapBytes} bytes), ` +
      `${ROUNDS} alternating rounds of ${seconds} s; median (min–max).`,
    rows: NAMES.map((name) => ({
      way: WAYS[name],
      'requests/s': perSecond(name),
      'plain way = 1': against(name, 'plain'),
      'server CPU ms/request': spread(results[name].map(({ server }) => server)).median,
      'database CPU ms/request': spread(results[name].map(({ database }) => database)).median,
      'generator CPU ms/request': spread(results[name].map(({ generator: ms }) => ms)).median,
    })),
    goals: [
      atLeast('service / plain way', 3, against('service', 'plain')),
      atLeast('service / one primary-key read', 0.85, against('service', 'oneRead')),
      atLeast('service / Express + Sequelize', 10, against('service', 'express')),
      atLeast('enforced / client', 0.85, against('service', 'client')),
    ],
  }
}

/** Throws unless the server answers the map as the database has it; the constant ones know one. */
async function verify({ data }: Bench, name: Way, url: string) {
  const knowsOne = name === 'constant' || name === 'oneRead'
  for (const { usuario, mapa } of knowsOne ? data.mapas.slice(0, 1) : data.mapas) {
    const answer = await fetch(url + mapPath(usuario), { headers: authorization(usuario) })
    assert.equal(answer.status, 200, WAYS[name])
    assert.deepEqual(await answer.json(), mapa, WAYS[name])
  }
}
