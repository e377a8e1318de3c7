import type { Sql } from '../db.js'
import type { Credenciales, Sesion } from './schemas.js'

/** The user who logs in under `nombre`, compared exactly, active or not. */
export async function findCredenciales(
  sql: Sql,
  nombre: string,
): Promise<Credenciales | undefined> {
  // The folded comparison is for the index.
  const [usuario] = await sql<Credenciales[]>`
    select id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
      "idEstadoUsuario", "imagenUrl"
    from usuario
    where fold_case("strNombreUsuario") = fold_case(${nombre}) and "strNombreUsuario" = ${nombre}
  `
  return usuario
}

/** The active user that a token speaks for, as the row is now. */
export async function findSesion(sql: Sql, id: number): Promise<Sesion | undefined> {
  const [sesion] = await sql<Sesion[]>`
    select id, "idPerfil", "strNombreUsuario" as nombre
    from usuario
    where id = ${id} and "idEstadoUsuario"
  `
  return sesion
}
