/**
 * `npm run soak [-- --minutes N]`: the compiled service for that long at half of what it can do,
 * with all kinds of requests. Ends with 1 when one is answered wrongly, or when memory, handles or
 * database connections have grown.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startImageHost } from '../../src/dev/imagenes.js'
import { startBench } from '../bench/bench.js'
import { authorization, mapRequests, openDatabase } from '../bench/data.js'
import type { LoadRequest } from '../bench/load.js'
import { p99, residentMb, spread } from '../bench/measure.js'
import { SERVERS } from '../bench/processes.js'
import { atMost, markdown } from '../bench/report.js'
import { cycle } from './cycle.js'

const CLIENTS = 50
/** Rounds of writes that go on at a time. */
const WRITERS = 2
const WARM_UP_SECONDS = 20
const SAMPLES = 60
/** What the last third may have more than the first: a share of the memory, and handles. */
const MEMORY_GROWTH = 1.15
const HANDLES_GROWTH = 20
const POOL = 10

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } })
const seconds = Number(values.minutes) * 60
if (!(seconds >= 30)) {
  console.error('--minutes 0.5 or more')
  process.exit(2)
}

const bench = await startBench({ seconds: 3 })
const images = await startImageHost({ dir: join(bench.folder, 'images') })
const sql = openDatabase(bench.database.url)
const stop = () =>
  bench.stop().finally(() => Promise.all([images.close(), sql.end({ timeout: 1 })]))
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => stop().finally(() => process.exit(1)))
}

try {
  process.exitCode = (await soak()) ? 0 : 1
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  await stop()
}
// A round of writes that failed leaves others behind.
process.exit()

/** Whether everything has held. */
async function soak() {
  const { data, generator } = bench
  const { pid, url } = await bench.startServer(SERVERS.service, {
    CLOUDINARY_URL: images.cloudinaryUrl,
  })
  const requests = reads()
  const good = requests.filter(({ status }) => status === undefined)
  const flood = { kind: 'flood', url, requests: good, connections: CLIENTS } as const
  await generator.run({ ...flood, seconds: 2 })
  const { answered, seconds: took } = await generator.run({ ...flood, seconds: bench.seconds })
  const capacity = Math.round(answered / took)
  const perSecond = Math.round(capacity / 2)

  const end = performance.now() + (WARM_UP_SECONDS + seconds) * 1000
  const writers = data.administradores.slice(0, WRITERS).map(async ({ nombre }, writer) => {
    let written = 0
    for (let round = 0; performance.now() < end; round += 1) {
      written += await cycle(url, nombre, `remojo_${writer}_${round}`)
      // As long as the rest has its half, the writes are not to be all there is.
      await sleep(200)
    }
    return written
  })
  const load = generator.run({
    kind: 'paced',
    url,
    requests,
    seconds: WARM_UP_SECONDS + seconds,
    perSecond,
  })
  const [samples, paced, ...written] = await Promise.all([sample(pid, url), load, ...writers])
  const writes = written.reduce((sum, count) => sum + count, 0)

  const thirds = [0, 1, 2].map((third) =>
    samples.slice((third * samples.length) / 3, ((third + 1) * samples.length) / 3),
  )
  const median = (third: number, key: keyof Sample) =>
    spread((thirds[third] ?? []).map((sample) => sample[key])).median
  const goals = [
    atMost('memory, last third / first', MEMORY_GROWTH, median(2, 'memory') / median(0, 'memory')),
    atMost(
      'handles, last third - first',
      HANDLES_GROWTH,
      median(2, 'handles') - median(0, 'handles'),
    ),
    atMost(
      'database connections',
      POOL,
      Math.max(...samples.map(({ connections }) => connections)),
    ),
  ]
  console.log(
    markdown({
      title: 'Soak',
      about:
        `${seconds} s after ${WARM_UP_SECONDS} s of warm-up: ${perSecond} reads a second, half of ` +
        `the ${capacity} that ${CLIENTS} clients get, with a p99 of ${Math.round(p99(paced.times))} ` +
        `ms, beside ${writes} requests in rounds of logins, writes, images and refusals; ` +
        'none was answered wrongly.',
      rows: [0, 1, 2].map((third) => ({
        third: `${third + 1}`,
        'memory, MB': spread((thirds[third] ?? []).map(({ memory }) => memory)),
        handles: spread((thirds[third] ?? []).map(({ handles }) => handles)),
        'database connections': spread((thirds[third] ?? []).map(({ connections }) => connections)),
      })),
      goals,
    }),
  )
  return goals.every(({ holds }) => holds)
}

/** Maps and lists, and between them what is refused. */
function reads(): LoadRequest[] {
  const [administrador] = bench.data.administradores
  if (!administrador) throw new Error('no administrator')
  const headers = authorization(administrador)
  return mapRequests(bench.data.lectores).flatMap((map, index): LoadRequest[] => [
    map,
    { path: `/api/permisos?page=${index + 1}`, headers },
    { path: `/api/modulo?search=${index % 200}`, headers },
    { path: `/api/usuario?page=${index + 1}`, headers },
    { path: '/api/perfil?isAdmin=true', headers },
    { path: '/api/modulo/list', headers: {}, status: 401 },
    { path: '/api/usuario', headers: map.headers, status: 403 },
    { path: '/api/permisos?page=0', headers, status: 400 },
    {
      method: 'POST',
      path: '/api/permisos/guardar-matriz',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ idPerfil: map.path.split('/').at(-1), permisos: [{ idModulo: 1 }] }),
    },
  ])
}

interface Sample {
  memory: number
  /** Without the connections of clients, who have as many as they like. */
  handles: number
  connections: number
}

/** Looks SAMPLES times, once the service is warm. */
async function sample(pid: number, url: string) {
  const samples: Sample[] = []
  await sleep(WARM_UP_SECONDS * 1000)
  for (let index = 0; index < SAMPLES; index += 1) {
    await sleep((seconds * 1000) / SAMPLES)
    const [row] = await sql<[{ connections: number }]>`
      select count(*)::integer as connections
      from pg_stat_activity
      where application_name = 'llavero'
    `
    const handles = readdirSync(`/proc/${pid}/fd`).length - countClients(url)
    samples.push({ memory: residentMb(pid), handles, connections: row.connections })
  }
  return samples
}

/** The connections to the service that are established at both ends. */
function countClients(url: string) {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0')
  const established = new RegExp(`^ *\\d+: \\w+:${port} \\w+:\\w+ 01 `, 'gm')
  return readFileSync('/proc/net/tcp', 'utf8').match(established)?.length ?? 0
}
