import { LRUCache } from 'lru-cache'
import type { Actor } from '../access/caller.js'
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
 * Returns a function that finds the permission map of the caller's own profile. If the cached map has
 * the version that the look-up of the session has returned, the cached one is returned. Otherwise the
 * map is read from the database.
 *
 * Every client loads this map after every login and every restored session, so the body of each
 * answer is cached by profile. The version is stored in the profile's row, and triggers change it at
 * every write to the map. The statement that authorises the request reads the version too, so no
 * replica ever sends an outdated map. `npm run bench -- --endpoint map` compares the cache with
 * reading the rows for each request.
 *
 * Requests for the same version must share one read, because reads of maps have no share per user. Otherwise
 * one user could occupy all connections while the map keeps changing.
 */
export function cacheMapas(sql: Sql, maxBytes = MAX_BYTES) {
  const cache = new LRUCache<number, Mapa>({
    maxSize: maxBytes,
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

  return async ({ idPerfil, versionPermisos }: Actor): Promise<Mapa> => {
    const cached = cache.get(idPerfil)
    if (cached?.version === versionPermisos) return cached

    const inFlight = reads.get(versionPermisos)
    if (inFlight) return inFlight
    const begun = read(idPerfil).finally(() => reads.delete(versionPermisos))
    reads.set(versionPermisos, begun)
    return begun
  }
}
