import { LRUCache } from 'lru-cache'
import type { Sql } from '../database/sql.js'
import { findMapaDePermisos } from './queries.js'

/**
 * Why this is here: every client loads the permission map after every login and every restored
 * session. The text of a map is kept by profile and version. The version stands in the profile's
 * row, which triggers change with every write to the map, and the query that authorises the request
 * reads it: a kept text is sent only when the database has just said that it is the present one, so
 * no replica ever sends a stale one. `npm run bench -- --endpoint map` compares it with reading the rows
 * each time.
 *
 * Requests that miss the same version share one read. One's own map needs no turn (http/turns.ts),
 * so somebody who changes it all the time would otherwise have it read for each request.
 */
export interface Mapa {
  version: string | null
  body: Buffer
}

/** The kept texts may have this many bytes together; the one not asked for longest goes first. */
const MAX_BYTES = 32 * 1024 * 1024

/**
 * Gives a function that gives the answer to a request for a profile's permission map (contract,
 * section 4.6), from memory where `version` is the one that is kept. `version` null: no profile.
 */
export function keepMapas(sql: Sql, maxBytes = MAX_BYTES) {
  const kept = new LRUCache<number, Mapa>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length,
  })

  /** The reads that have not ended, by the version that they were begun for. */
  const reading = new Map<string, Promise<Mapa>>()

  // Text and version come from one snapshot, which may be newer than what authorised the request.
  async function read(idPerfil: number): Promise<Mapa> {
    const found = await findMapaDePermisos(sql, idPerfil)
    if (!found) return EMPTY
    const mapa = { version: found.version, body: serialize(found.permisos) }
    kept.set(idPerfil, mapa)
    return mapa
  }

  return async (idPerfil: number, version: string | null): Promise<Mapa> => {
    if (version === null) return EMPTY
    const found = kept.get(idPerfil)
    if (found?.version === version) return found
    const begun = reading.get(version) ?? read(idPerfil).finally(() => reading.delete(version))
    reading.set(version, begun)
    return begun
  }
}

const serialize = (permisos: object) => Buffer.from(JSON.stringify({ success: true, permisos }))

const EMPTY: Mapa = { version: null, body: serialize({}) }
