import type { Sql } from '../database/sql.js'
import type { Actor } from './caller.js'
import { onRefusal } from './refusal.js'
import type { Credenciales, Lookup, Sesion } from './schemas.js'

/** The user who logs in under `nombre`, compared exactly, active or not. */
export async function findCredenciales(sql: Sql, nombre: string) {
  // The folded comparison is for the index.
  const [usuario] = await sql<Credenciales[]>`
    select id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
      "idEstadoUsuario", "imagenUrl", "versionSesion"
    from usuario
    where require_primary() and fold_case("strNombreUsuario") = fold_case(${nombre})
      and "strNombreUsuario" = ${nombre}
  `
  return usuario
}

/**
 * Ends all sessions of the actor: no token issued so far is valid any more. Throws the Failure
 * `unauthenticated` when the actor's session has ended already.
 */
export async function endSesiones(sql: Sql, actor: Actor): Promise<void> {
  await sql`select end_sesiones(${sql.json(actor)})`.catch(onRefusal)
}

/**
 * Finds the active users that tokens speak for, as their rows are now, each at the place of its
 * look-up: undefined where the user is inactive or gone, or the session has been ended.
 *
 * The permission is not looked up for administrators and for those who load their own map, because
 * they need none; `permitido` is false for them.
 *
 * All rows are read by a unique key, one look-up after the other, whatever the planner knows of the
 * tables. The look-ups come as JSON because the planner takes the number of elements of an array
 * into account: it would plan the statement each time, for 0.2 ms.
 */
export async function findSesiones(sql: Sql, lookups: Lookup[]): Promise<(Sesion | undefined)[]> {
  const numbered = lookups.map((lookup, n) => ({ n, ...lookup }))
  const rows = await sql<(Sesion & { n: number })[]>`
    with modulos as materialized (
      select id, "strNombreModulo" from modulo where is_modulo_de_sistema("strNombreModulo")
    )
    select lookup.n, sesion.id, nombre, "idPerfil", perfil, administrador, sesion.ver,
      case
        when administrador or "versionOf" = "idPerfil" then false
        else coalesce((
          select case accion
            when 'bitAgregar' then "bitAgregar"
            when 'bitEditar' then "bitEditar"
            when 'bitConsulta' then "bitConsulta"
            when 'bitEliminar' then "bitEliminar"
            when 'bitDetalle' then "bitDetalle"
          end
          from permisos_perfil
          where permisos_perfil."idPerfil" = sesion."idPerfil"
            and "idModulo" = (select id from modulos where "strNombreModulo" = lookup.modulo)
        ), false)
      end as permitido,
      case
        when "versionOf" is null then null
        when "versionOf" = "idPerfil" then version
        else (select "versionPermisos" from perfil where perfil.id = "versionOf")
      end as "versionPermisos"
    from jsonb_to_recordset(${sql.json(numbered)}) as lookup (
      n integer, id integer, ver integer, modulo text, accion text, "versionOf" integer
    )
    cross join lateral (
      select usuario.id, "strNombreUsuario" as nombre, "idPerfil", "strNombrePerfil" as perfil,
        "bitAdministrador" as administrador, "versionSesion" as ver, "versionPermisos" as version
      from usuario
      join perfil on perfil.id = "idPerfil"
      where usuario.id = lookup.id and "versionSesion" = lookup.ver and "idEstadoUsuario"
      limit 1
    ) as sesion
    where require_primary()
  `
  const sesiones = new Map(rows.map((row) => [row.n, row]))
  return lookups.map((_, n) => sesiones.get(n))
}
