import { fragment, type Sql } from '../database/sql.js'
import type { Lookup, Sesion } from './caller.js'

/**
 * postgres.js 3.4.9 sends a message of at least this many bytes at once, and a shorter one in the
 * next turn of the event loop.
 */
const SENT_AT_ONCE = 1024

const IS_ADMINISTRADOR = fragment`administrador`
/** Whether the profile is an administrator's, or has the permission of the look-up. */
const IS_PERMITIDO = fragment`
  administrador or coalesce(
    (
      select has_flag(permisos_perfil, accion)
      from permisos_perfil
      where permisos_perfil."idPerfil" = sesion."idPerfil"
        and "idModulo" = (
          select id
          from modulo
          where "strNombreModulo" = lookup.modulo
        )
    ),
    false
  )
`

/**
 * Finds the sessions for several look-ups in one statement and returns them in the same order. The
 * `id` is null if the user is inactive or deleted, or the session has ended. Throws an error on a
 * standby, which may have old data.
 *
 * With `limit 1` PostgreSQL reads the user and the profile of each look-up by their unique keys. It
 * does so even if the tables have no statistics. The left join gives each look-up a row, even
 * without a session.
 */
export async function findSesiones(sql: Sql, lookups: Lookup[]) {
  // The tables of the permissions take a fifth of the statement's time even if PostgreSQL reads
  // none of their rows. So they are in the statement only if one of the look-ups has a permission.
  const permitido = lookups.some(({ modulo }) => modulo) ? IS_PERMITIDO : IS_ADMINISTRADOR
  // Spaces make the message of a prepared statement so long that the driver sends it at once. The
  // look-ups have already waited for a turn of the event loop (batchLookups). If they waited for
  // another one, the service would answer some 7 % fewer requests of four clients.
  const json = JSON.stringify(lookups).padEnd(SENT_AT_ONCE)
  // Without `::text`, postgres.js would encode the JSON again.
  return sql<(Sesion | { id: null })[]>`
    select
      sesion.id,
      nombre,
      "idPerfil",
      perfil,
      administrador,
      ${permitido} as permitido,
      "versionPermisos"
    from rows from (
      jsonb_to_recordset(${json}::text::jsonb)
        as (id integer, ver integer, modulo text, accion text)
    ) with ordinality as lookup (id, ver, modulo, accion, n)
    left join lateral (
      select
        usuario.id,
        "strNombreUsuario" as nombre,
        "idPerfil",
        "strNombrePerfil" as perfil,
        "bitAdministrador" as administrador,
        "versionPermisos"
      from usuario
      join perfil on perfil.id = "idPerfil"
      where usuario.id = lookup.id
        and "versionSesion" = lookup.ver
        and "idEstadoUsuario"
      limit 1
    ) as sesion on true
    where require_primary()
    order by n
  `
}
