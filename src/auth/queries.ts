import type { Caller, TokenPayload } from '../access/caller.js'
import { write } from '../access/write.js'
import type { Sql } from '../database/sql.js'
import { isStorable } from '../texts.js'
import type { Credenciales, UsuarioDeSesion } from './schemas.js'

/**
 * Finds the user with exactly this name, who may be inactive. Returns undefined if there is none.
 * Throws an error on a standby, which may have old data.
 */
export async function findCredenciales(sql: Sql, nombre: string) {
  // PostgreSQL refuses NUL, and the driver would send another character for an unpaired surrogate.
  if (!isStorable(nombre)) return undefined
  // The index is on the folded names. The comparison of the folded names lets PostgreSQL use it.
  const [usuario] = await sql<Credenciales[]>`
    select id, "strNombreUsuario", "strPwd", "idEstadoUsuario"
    from usuario
    where fold_case("strNombreUsuario") = fold_case(${nombre})
      and "strNombreUsuario" = ${nombre}
      and require_primary()
  `
  return usuario
}

/** Finds the caller, as findCredenciales does. Returns undefined if the session has ended. */
export async function findOwnCredenciales(sql: Sql, { id, ver }: Caller) {
  const [usuario] = await sql<Credenciales[]>`
    select id, "strNombreUsuario", "strPwd", "idEstadoUsuario"
    from usuario
    where id = ${id} and "versionSesion" = ${ver} and require_primary()
  `
  return usuario
}

/**
 * Begins a session of the user, if the user is still active and still has this name and this hash.
 * Adds the row of the login to the audit. Returns the user as the answer of the login has it, with
 * the version of the user's sessions, or else null.
 */
export async function beginSesion(
  sql: Sql,
  credenciales: Credenciales,
  client: Pick<Caller, 'ip' | 'idPeticion'>,
) {
  const call = sql`select begin_sesion(${credenciales}, ${client}) as answer`
  return write<(UsuarioDeSesion & { ver: number }) | null>(call)
}

/**
 * Replaces the hash of the caller's password, and ends all sessions of the caller. Returns the
 * payload of the caller's new token.
 */
export async function updatePassword(sql: Sql, hash: string, caller: Caller) {
  return write<TokenPayload>(sql`select update_password(${hash}, ${caller}) as answer`)
}

/** Ends all sessions of the caller. Afterwards no token that was issued before is valid. */
export async function endSesiones(sql: Sql, caller: Caller) {
  await write(sql`select end_sesiones(${caller}) as answer`)
}
