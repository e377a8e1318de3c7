import postgres from 'postgres'
import type { Bench } from '../bench.js'
import { authorization, openDatabase } from '../data.js'
import { alternate, type Section, spread } from '../measure.js'
import { SERVERS } from '../processes.js'

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
  const calls = data.administradores.slice(0, CLIENTS).flatMap((actor, client) => {
    const perfil = data.lectores[client]
    return perfil ? [{ actor, idPerfil: perfil.idPerfil }] : []
  })
  const requests = calls.map(({ actor, idPerfil }) => ({
    method: 'POST' as const,
    path: '/api/permisos/guardar-matriz',
    headers: { ...authorization(actor), 'content-type': 'application/json' },
    body: JSON.stringify({ idPerfil, permisos }),
  }))
  const { url, stop } = await bench.startServer(SERVERS.service, {
    DATABASE_URL: database,
    DATABASE_POOL_MAX: `${CLIENTS}`,
  })

  async function throughService(connections: number, seconds: number) {
    const own = requests.slice(0, connections)
    const load = await generator.run({ kind: 'flood', url, requests: own, seconds, connections })
    return load.answered / load.seconds
  }

  /** The same SQL function, called without the service. */
  async function directly(connections: number, seconds: number) {
    const pool = postgres(database, { max: connections, fetch_types: false })
    const begin = performance.now()
    const elapsed = () => (performance.now() - begin) / 1000
    let count = 0
    await Promise.all(
      calls.slice(0, connections).map(async ({ actor, idPerfil }) => {
        const session = {
          id: actor.id,
          ver: 0,
          modulo: 'PERMISOS',
          accion: 'bitEditar',
          enforced: true,
        }
        for (; elapsed() < seconds; count += 1) {
          await pool`select replace_permisos(${pool.json(session)}, ${idPerfil},
            ${pool.json(permisos as never)})`
        }
      }),
    )
    await pool.end()
    return count / elapsed()
  }

  const ways: Record<string, () => Promise<number>> = {
    [`Llavero, ${CLIENTS} clients`]: () => throughService(CLIENTS, seconds),
    'Llavero, 1 client': () => throughService(1, seconds),
    [`postgres.js, ${CLIENTS} connections`]: () => directly(CLIENTS, seconds),
    'postgres.js, 1 connection': () => directly(1, seconds),
  }
  await throughService(CLIENTS, 1)
  const results = await alternate(ROUNDS, Object.keys(ways), async (way) => {
    await sql`vacuum permisos_perfil, perfil`
    return ways[way]?.() ?? Number.NaN
  })
  await stop()
  await sql.end()
  return {
    title: 'Matrix replace',
    about:
      `${permisos.length} entries a request, each client on a profile of its own; postgres.js calls ` +
      `the same SQL function. ${ROUNDS} alternating rounds of ${seconds} s; median (min–max).`,
    rows: Object.entries(results).map(([way, rates]) => ({ way, 'requests/s': spread(rates) })),
  }
}
