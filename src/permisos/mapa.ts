import { LRUCache } from 'lru-cache'
import type { Caller } from '../access/schemas.js'
import type { Sql } from '../database/sql.js'
import { findMapaDePermisos } from './queries.js'

/** A permission map as it is sent to clients. */
export interface Mapa {
  /** The version of the map. Null if there is no such profile. */
  version: string | null
  /** The body of the answer, as JSON. */
  body: Buffer
}

/**
 * How many bytes all cached bodies may have together. If there are more, the cache removes the
 * bodies that were not used for the longest time.
 */
const MAX_BYTES = 32 * 1024 * 1024

/** Reads the permission map of a profile (contract, section 4.6). It is empty if there is no such profile. */
export async function findMapa(sql: Sql, idPerfil: number): Promise<Mapa> {
  const { version, permisos } = await findMapaDePermisos(sql, idPerfil)
  const json = JSON.stringify({ success: true, permisos })
  return { version, body: Buffer.from(json) }
}

/**
 * Returns a function that finds the permission map of the caller's own profile. The map of the version that
 * the look-up of the session has returned is read from the database once, and then cached.
 *
 * Every client loads this map after every login and every restored session, so the body of each
 * answer is cached. The version is stored in the profile's row, and triggers change it at every write to the
 * map. The statement that authorises the request reads the version too, so no replica ever sends an outdated
 * map. `npm run bench -- --endpoint map` compares the cache with reading the rows for each request.
 *
 * Requests for the same version share one read, because reads of maps have no share per user. Otherwise
 * one user could occupy all connections while the map keeps changing.
 */
export function cacheMapas(sql: Sql) {
  // No two profiles share a version.
  const mapas = new LRUCache<string, Mapa, number>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ body }) => body.length,
    fetchMethod: (_version, _old, { context: idPerfil }) => findMapa(sql, idPerfil),
    // A read goes on when the cache needs its place.
    ignoreFetchAbort: true,
  })
  return async ({ idPerfil, versionPermisos }: Caller) => {
    const mapa = await mapas.forceFetch(versionPermisos, { context: idPerfil })
    // The map may have changed since the look-up. After a restore its old version is valid again, so the new
    // map is not cached under the old version.
    if (mapa.version !== versionPermisos) mapas.delete(versionPermisos)
    return mapa
  }
}
