import { LRUCache } from 'lru-cache'
import type { Sesion } from '../access/caller.js'
import type { Sql } from '../database/sql.js'
import { findMapa } from './queries.js'

/**
 * How many bytes all cached bodies may have together. If there are more, the cache removes the
 * bodies that were not used for the longest time.
 */
const MAX_BYTES = 32 * 1024 * 1024

/**
 * Returns a function that finds the permission map of the caller's own profile. It returns the
 * cached map of the version in the session, and reads the map if there is none.
 *
 * Every client loads this map after a login, and when it starts with a token that it has kept. So
 * the body of each answer is cached. The version is stored in the profile's row, and every write to
 * the map changes it. The statement that authorises the request reads the version too, so no
 * replica ever sends an outdated map. `npm run bench -- --endpoint map` compares the service with
 * the plain way, which reads the rows for each request.
 *
 * Requests that need the same version wait for one read. These reads count towards no user's share
 * of the connections. If each request had a read of its own, one user whose map keeps changing
 * could take all connections.
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
    // If the versions differ, the permissions have changed since the session was looked up. The
    // cache must not keep the new map under the old version: after a failover to a standby that was
    // behind, the old version may be the present one again.
    if (mapa.version !== versionPermisos) cache.delete(versionPermisos)
    return mapa
  }
}
