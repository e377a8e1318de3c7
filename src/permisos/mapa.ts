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
