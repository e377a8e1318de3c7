import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import postgres from 'postgres'
import type { Bench } from '../bench.js'
import { authorization, openDatabase } from '../data.js'
import { alternate, cpuMs, databaseCpuMs, spread } from '../measure.js'
import { SERVERS } from '../processes.js'
import { atLeast, atMost, type Section } from '../report.js'

const CLIENTS = 8
const ROUNDS = 3

/** The matrix of a profile replaced as a whole, each client on a profile of its own. */
export async function matrix(bench: Bench): Promise<Section> {
  const { data, generator, seconds } = bench
  const database = await bench.copyData('matriz')
  const sql = openDatabase(database)
  const modulos = await sql<{ id: number }[]>`select id from modulo order by id`
  const permisos = modulos.map(({ id }, index) => ({
    idModulo: id,
    bitAgregar: index % 2 === 0,
    bitEditar: index % 3 === 0,
    bitConsulta: true,
    bitEliminar: index % 5 === 0,
    bitDetalle: index % 7 === 0,
  }))
  const perfiles = data.lectores.slice(0, CLIENTS).map(({ idPerfil }) => idPerfil)
  const actors = data.administradores.slice(0, CLIENTS)
  const requests = perfiles.map((idPerfil, client) => {
    const actor = actors[client]
    if (!actor) throw new Error('an administrator for each client')
    return {
      method: 'POST' as const,
      path: '/api/permisos/guardar-matriz',
      headers: { ...authorization(actor), 'content-type': 'application/json' },
      body: JSON.stringify({ idPerfil, permisos }),
    }
  })
  const calls = perfiles.map((idPerfil, client) => ({ actor: actors[client]?.id ?? 0, idPerfil }))
  const pgbench = findPgbench()
  const reference = pgbench ? 'pgbench' : 'postgres.js in a loop (no pgbench here)'
  const callDirectly = pgbench
    ? await withPgbench(pgbench, database, bench.folder, calls, JSON.stringify(permisos))
    : withPostgresJs(database, calls, permisos)

  const { url, pid, stop } = await bench.startServer(SERVERS.service, {
    DATABASE_URL: database,
    // As many as pgbench has.
    DATABASE_POOL_MAX: `${CLIENTS}`,
  })
  const flood = async (connections: number, seconds: number) => {
    const own = requests.slice(0, connections)
    const load = await generator.run({ kind: 'flood', url, requests: own, seconds, connections })
    return load.answered / load.seconds
  }
  const ways = {
    eight: { way: `Llavero, ${CLIENTS} clients`, clients: CLIENTS, run: flood },
    one: { way: 'Llavero, 1 client', clients: 1, run: flood },
    direct: { way: `${reference}, ${CLIENTS} connections`, clients: CLIENTS, run: callDirectly },
    directOne: { way: `${reference}, 1 connection`, clients: 1, run: callDirectly },
  }
  type Way = keyof typeof ways
  const names = Object.keys(ways) as Way[]
  const measureFor = (forSeconds: number) => async (name: Way) => {
    await sql`vacuum permisos_perfil, perfil`
    const before = [cpuMs(pid), databaseCpuMs(bench.database.pid)] as const
    const begin = performance.now()
    const perSecond = await ways[name].run(ways[name].clients, forSeconds)
    const elapsed = (performance.now() - begin) / 1000
    // What an ended connection used counts once the server has noticed.
    await sleep(200)
    const count = perSecond * elapsed
    return {
      perSecond,
      server: (cpuMs(pid) - before[0]) / count,
      database: (databaseCpuMs(bench.database.pid) - before[1]) / count,
    }
  }
  await alternate(1, names, measureFor(1))
  const results = await alternate(ROUNDS, names, measureFor(seconds))
  await stop()
  await sql.end()

  const perSecond = (name: Way) => spread(results[name].map((result) => result.perSecond))
  return {
    title: 'Matrix replace',
    about:
      `${permisos.length} entries a request, each client on a profile of its own; ${reference} ` +
      `calls the same SQL function. ${ROUNDS} alternating rounds of ${seconds} s; median (min–max).`,
    rows: names.map((name) => ({
      way: ways[name].way,
      'requests/s': perSecond(name),
      'server CPU ms/request': name.startsWith('direct')
        ? ''
        : spread(results[name].map(({ server }) => server)).median,
      'database CPU ms/request': spread(results[name].map(({ database }) => database)).median,
    })),
    goals: [
      atMost(`${reference} / service`, 1.3, perSecond('direct').median / perSecond('eight').median),
      // Clients that waited for each other would reach 1.
      atLeast('8 clients / 1 client', 1.2, perSecond('eight').median / perSecond('one').median),
    ],
  }
}

interface Call {
  actor: number
  idPerfil: number
}

/** Debian keeps the program of each version in a folder of its own. */
function findPgbench() {
  const debian = '/usr/lib/postgresql'
  const list = (path: string) => {
    try {
      return readdirSync(path)
    } catch {
      return []
    }
  }
  const folders = list(debian).map((version) => join(debian, version, 'bin'))
  return [...folders, ...(process.env.PATH ?? '').split(':')]
    .filter((folder) => list(folder).includes('pgbench'))
    .map((folder) => join(folder, 'pgbench'))[0]
}

async function withPgbench(
  program: string,
  database: string,
  folder: string,
  calls: Call[],
  permisos: string,
) {
  const script = join(folder, 'matriz.pgbench')
  const choose = (values: number[]) =>
    `case ${values.map((value, client) => `when :client_id = ${client} then ${value}`).join(' ')} end`
  await writeFile(
    script,
    `\\set actor ${choose(calls.map(({ actor }) => actor))}
\\set perfil ${choose(calls.map(({ idPerfil }) => idPerfil))}
select replace_permisos(jsonb_build_object('id', :actor::integer, 'ver', 0, 'modulo', 'PERMISOS',
  'accion', 'bitEditar', 'enforced', true), :perfil::integer, :permisos::jsonb);
`,
  )
  const { hostname, port, password, username, pathname } = new URL(database)
  const env = {
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: username,
    PGPASSWORD: password,
    PGDATABASE: pathname.slice(1),
  }
  return async (clients: number, seconds: number) => {
    const args = `-n -M prepared -c ${clients} -j 1 -T ${Math.ceil(seconds)}`.split(' ')
    const { stdout } = await promisify(execFile)(
      program,
      [...args, '-D', `permisos=${permisos}`, '-f', script],
      { env },
    )
    return Number(/^tps = ([\d.]+)/m.exec(stdout)?.[1])
  }
}

function withPostgresJs(database: string, calls: Call[], permisos: object[]) {
  return async (clients: number, seconds: number) => {
    const sql = postgres(database, { max: clients, fetch_types: false })
    const begin = performance.now()
    let count = 0
    await Promise.all(
      calls.slice(0, clients).map(async ({ actor, idPerfil }) => {
        while (performance.now() - begin < seconds * 1000) {
          const session = {
            id: actor,
            ver: 0,
            modulo: 'PERMISOS',
            accion: 'bitEditar',
            enforced: true,
          }
          await sql`select replace_permisos(${sql.json(session)}, ${idPerfil},
            ${sql.json(permisos as never)})`
          count += 1
        }
      }),
    )
    await sql.end()
    return count / ((performance.now() - begin) / 1000)
  }
}
