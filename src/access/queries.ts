import type { Sql } from '../database/sql.js'
import type { Lookup, Sesion } from './schemas.js'

/**
 * Finds the sessions for several look-ups in one statement and returns them in the same order. An
 * element is undefined if the user is inactive or deleted, or the session has ended. Throws an
 * error on a standby, which may have old data.
 *
 * With `limit 1` PostgreSQL reads the user and the profile of each look-up by their unique keys. It
 * does so even if the tables have no statistics.
 */
export async function findSesiones(sql: Sql, lookups: Lookup[]) {
  const rows = await sql<(Sesion | { id: null })[]>`
    select
      sesion.id,
      nombre,
      "idPerfil",
      perfil,
      administrador,
      administrador or coalesce((
        select has_flag(permisos_perfil, accion)
        from permisos_perfil
        where permisos_perfil."idPerfil" = sesion."idPerfil"
          and "idModulo" = (
            select id
            from modulo
            where "strNombreModulo" = lookup.modulo
          )
      ), false) as permitido,
      "versionPermisos"
    from rows from (
      jsonb_to_recordset(${lookups})
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
  return rows.map((row) => (row.id === null ? undefined : row))
}
