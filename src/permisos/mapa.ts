import { LRUCache } from 'lru-cache'
import type { Sesion } from '../access/schemas.js'
import type { Sql } from '../database/sql.js'
import type { PermisosAccion } from './schemas.js'

/**
 * How many bytes all cached bodies may have together. If there are more, the cache removes the
 * bodies that were not used for the longest time.
 */
const MAX_BYTES = 32 * 1024 * 1024

/**
 * Finds the permission map of a profile (contract, section 4.6), which is empty if the profile is
 * unknown. `version` is null then. `body` is the body of the answer, as JSON.
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

/**
 * Returns a function that finds the permission map of the caller's own profile. It returns the
 * cached map of the version in the session, and reads the map if there is none.
 *
 * Every client loads this map after a login, and when it starts with a token that it has kept. So the
 * body of each answer is cached. The version is stored in the profile's row, and every write to the
 * map changes it. The statement that authorises the request reads the version too, so no replica ever
 * sends an outdated map. `npm run bench -- --endpoint map` compares the cache with reading the rows
 * for each request.
 *
 * Requests that need the same version wait for one read. These reads count towards no user's share
 * of the connections. If each request had a read of its own, one user whose map keeps changing could
 * take all connections.
 */
export function cacheMapas(sql: Sql) {
  const cache = new LRUCache<string, Awaited<ReturnType<typeof findMapa>>, number>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ body }) => body.length,
    // A read in flight goes on when the cache needs its place for another map.
    ignoreFetchAbort: true,
    fetchMethod: (_version, _stale, { context: idPerfil }) => findMapa(sql, idPerfil),
  })

  return async ({ idPerfil, versionPermisos }: Sesion) => {
    // No two profiles share a version.
    const mapa = await cache.forceFetch(versionPermisos, { context: idPerfil })
    // If the versions differ, the map was written after the session had been looked up. The cache must
    // not keep the new map under the old version, which would be valid again after a failover to a
    // standby that was behind.
    if (mapa.version !== versionPermisos) cache.delete(versionPermisos)
    return mapa
  }
}
