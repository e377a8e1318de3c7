import { LRUCache } from 'lru-cache'
import type { Sql } from '../database/sql.js'
import { findMapaDePermisos } from './queries.js'

/** The answer to a request for a permission map. `version` is null if there is no such profile. */
export interface Mapa {
  version: string | null
  body: Buffer
}

/**
 * The most bytes that all cached bodies may have together. The least recently used is evicted
 * first.
 */
const MAX_BYTES = 32 * 1024 * 1024

/**
 * Returns a function that answers requests for permission maps (contract, section 4.6). It takes
 * the id of the profile and the map's present version, which is null if there is no such profile.
 * It returns the cached map if that has this version, and else reads the map from the database.
 *
 * Every client loads the permission map after every login and every restored session, so the body
 * of each answer is cached by profile. The version is stored in the profile's row, and triggers
 * change it at every write to the map. The statement that authorises the request reads the version
 * too, so no replica ever sends an outdated map. `npm run bench -- --endpoint map` compares the
 * cache with reading the rows for each request.
 *
 * Requests for the same version that is not cached share one read. Requests for one's own map do
 * not wait for a turn (http/turns.ts). Without the shared read, a user who keeps changing the map
 * could make the service read it for each of many requests.
 */
export function cacheMapas(sql: Sql, maxBytes = MAX_BYTES) {
  const cache = new LRUCache<number, Mapa>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length,
  })

  /** The reads in flight, by the version for which they were begun. */
  const reads = new Map<string, Promise<Mapa>>()

  // The map and its version come from one snapshot. It may be newer than the version requested.
  async function read(idPerfil: number): Promise<Mapa> {
    const found = await findMapaDePermisos(sql, idPerfil)
    if (!found) return EMPTY
    const mapa = { version: found.version, body: serialize(found.permisos) }
    cache.set(idPerfil, mapa)
    return mapa
  }

  return async (idPerfil: number, version: string | null): Promise<Mapa> => {
    if (version === null) return EMPTY
    const cached = cache.get(idPerfil)
    if (cached?.version === version) return cached

    const begun = reads.get(version)
    if (begun) return begun
    const next = read(idPerfil).finally(() => reads.delete(version))
    reads.set(version, next)
    return next
  }
}

/** Returns the body of the answer with this permission map. */
const serialize = (permisos: object) => Buffer.from(JSON.stringify({ success: true, permisos }))

/** The answer for an unknown profile. */
const EMPTY: Mapa = { version: null, body: serialize({}) }
