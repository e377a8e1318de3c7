import type { Sql } from '../database/sql.js'
import { type Actor, onRefusal } from './actor.js'
import type { Accion, Credenciales, ModuloDeSistema, Sesion, Token } from './schemas.js'

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
 * The active user that a token speaks for, as the rows are now, and whether the user's profile has
 * the permission `needed`; with it the version of the permission map of the profile `versionOf`.
 * Undefined for a token issued before that user's sessions were ended.
 */
export async function findSesion(
  sql: Sql,
  { id, ver = 0 }: Token,
  needed?: { modulo: ModuloDeSistema; accion: Accion },
  versionOf?: number,
): Promise<Sesion | undefined> {
  const [sesion] = await sql<Sesion[]>`
    select usuario.id, "strNombreUsuario" as nombre, "idPerfil", "strNombrePerfil" as perfil,
      "bitAdministrador" as administrador, "versionSesion" as ver,
      coalesce((
        select (to_jsonb(permisos_perfil) ->> ${needed?.accion ?? 'bitConsulta'})::boolean
        from permisos_perfil
        join modulo on modulo.id = permisos_perfil."idModulo"
        where permisos_perfil."idPerfil" = usuario."idPerfil"
          and "strNombreModulo" = ${needed?.modulo ?? null}
      ), false) as permitido,
      (select "versionPermisos" from perfil where id = ${versionOf ?? null}) as "versionPermisos"
    from usuario
    join perfil on perfil.id = "idPerfil"
    where require_primary() and usuario.id = ${id} and "idEstadoUsuario" and "versionSesion" = ${ver}
  `
  return sesion
}

/**
 * The active users with these ids, each with the version of the own permission map: what one needs
 * to be given that map, for which no permission is asked. Two rows by their primary keys for each.
 */
export async function findSesionesForOwnMapa(
  sql: Sql,
  ids: number[],
): Promise<Map<number, Sesion>> {
  const sesiones = await sql<Sesion[]>`
    select usuario.id, "strNombreUsuario" as nombre, "idPerfil", "strNombrePerfil" as perfil,
      "bitAdministrador" as administrador, "versionSesion" as ver, false as permitido,
      "versionPermisos"
    from usuario
    join perfil on perfil.id = "idPerfil"
    where require_primary() and usuario.id = any(${`{${ids.join(',')}}`}::integer[])
      and "idEstadoUsuario"
  `
  return new Map(sesiones.map((sesion) => [sesion.id, sesion]))
}
