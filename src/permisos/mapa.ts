import { LRUCache } from 'lru-cache'
import type { Caller } from '../access/schemas.js'
import type { Sql } from '../database/sql.js'
import type { PermisosAccion } from './schemas.js'

/**
 * How many bytes all cached bodies may have together. If there are more, the cache removes the
 * bodies that were not used for the longest time.
 */
const MAX_BYTES = 32 * 1024 * 1024

/**
 * Finds the permission map of a profile (contract, section 4.6), which is empty if the profile is unknown.
 * `version` is null then. `body` is the body of the answer, as JSON.
 */
export async function findMapa(sql: Sql, idPerfil: number) {
  const rows = await sql<(PermisosAccion & { version: string })[]>`
    select
      "versionPermisos" as version,
      "strNombreModulo" as "nombreModulo",
      "bitAgregar",
      "bitEditar",
      "bitConsulta",
      "bitEliminar",
      "bitDetalle"
    from perfil
    left join (
      permisos_perfil
      join modulo on modulo.id = "idModulo"
    ) on "idPerfil" = perfil.id
    where perfil.id = ${idPerfil}
    order by permisos_perfil.id
  `
  // If the profile has no records, the statement returns one row, in which `nombreModulo` is null.
  const named = rows.filter(({ nombreModulo }) => nombreModulo !== null)
  const entries = named.map(({ version: _, ...accion }) => [accion.nombreModulo, accion])
  const json = JSON.stringify({ success: true, permisos: Object.fromEntries(entries) })
  return { version: rows[0]?.version ?? null, body: Buffer.from(json) }
}

type Mapa = Awaited<ReturnType<typeof findMapa>>

/**
 * Returns a function that finds the permission map of the caller's own profile. It returns the cached map if
 * its version is the one in the session, and reads the map otherwise.
 *
 * Every client loads this map after every login and every restored session, so the body of each
 * answer is cached by profile. The version is stored in the profile's row, and triggers change it at
 * every write to the map. The statement that authorises the request reads the version too, so no
 * replica ever sends an outdated map. `npm run bench -- --endpoint map` compares the cache with
 * reading the rows for each request.
 *
 * Equal reads in flight are shared. They are in no user's share, so without this one user could take every
 * connection while the map keeps changing.
 */
export function cacheMapas(sql: Sql) {
  const cache = new LRUCache<number, Mapa>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ body }) => body.length,
  })

  /** The reads in flight, by the version that was requested. No two profiles share a version. */
  const reads = new Map<string, Promise<Mapa>>()

  /** Reads a map and caches it. Its version may be newer than the one that was requested. */
  async function read(idPerfil: number) {
    const mapa = await findMapa(sql, idPerfil)
    cache.set(idPerfil, mapa)
    return mapa
  }

  return async ({ idPerfil, versionPermisos }: Caller): Promise<Mapa> => {
    const cached = cache.get(idPerfil)
    if (cached?.version === versionPermisos) return cached

    const inFlight = reads.get(versionPermisos)
    if (inFlight) return inFlight
    const begun = read(idPerfil).finally(() => reads.delete(versionPermisos))
    reads.set(versionPermisos, begun)
    return begun
  }
}
