import type { Caller } from '../access/caller.js'
import type { Needs } from '../access/refusal.js'
import { type FailureByConstraint, write } from '../access/write.js'
import { findPage, hasText } from '../database/page.js'
import { ALWAYS, fragment, type Sql } from '../database/sql.js'
import type { ImagenAlojada } from './imagen.js'
import type {
  Usuario,
  UsuarioEditado,
  UsuarioFiltro,
  UsuarioNuevo,
  UsuarioVisto,
} from './schemas.js'

const COLUMNS = fragment`
  usuario.id,
  "strNombreUsuario",
  "idPerfil",
  "strCorreo",
  "strNumeroCelular",
  "idEstadoUsuario",
  "imagenUrl"
`
const NOMBRE = fragment`"strNombreUsuario"`
const CORREO = fragment`"strCorreo"`
/** The rows of a page, with the names of the profiles. */
const CON_PERFIL = fragment`
  select page_rows.*, "strNombrePerfil" as "nombrePerfil"
  from page_rows
  join perfil on perfil.id = "idPerfil"
`

const FAILURES: FailureByConstraint = {
  usuario_correo_unico: ['conflict', 'El correo electrónico ya está registrado'],
  usuario_nombre_unico: ['conflict', 'El nombre de usuario ya está registrado'],
  usuario_perfil_fk: ['conflict', 'El perfil indicado no existe'],
}

/** The messages of the Failure `conflict` for a user. */
export const CONFLICT_MESSAGES = Object.values(FAILURES).map(([, message = '']) => message)

/** Finds one page of the users that match the filter, and the number of pages. */
export async function listUsuarios(sql: Sql, filtro: UsuarioFiltro) {
  const { search, idPerfil, estado } = filtro
  const rows = fragment`
    select ${COLUMNS}
    from usuario
    where (${hasText(NOMBRE, search)} or ${hasText(CORREO, search)})
      and ${idPerfil === undefined ? ALWAYS : fragment`"idPerfil" = ${idPerfil}`}
      and ${estado === undefined ? ALWAYS : fragment`"idEstadoUsuario" = ${estado}`}
  `
  return findPage<UsuarioVisto>(sql, filtro, rows, CON_PERFIL)
}

/**
 * Finds a user, or undefined if the id is unknown. `limite` is the id of the caller's profile, or
 * null for a caller who may see all users. `needs` is what that profile lacks to see the user, or
 * null.
 */
export async function findUsuario(sql: Sql, id: number, limite: number | null) {
  const [usuario] = await sql<(UsuarioVisto & { needs: Needs | null })[]>`
    select
      ${COLUMNS},
      "strNombrePerfil" as "nombrePerfil",
      needs_for("idPerfil", ${limite}) as needs
    from usuario
    join perfil on perfil.id = "idPerfil"
    where usuario.id = ${id}
  `
  return usuario
}

/** A user as it is written: the image has been uploaded already, and `strPwd` is a hash. */
type Preparado<T> = Omit<T, 'imagenBase64'> & Partial<ImagenAlojada>

/**
 * Adds a user and returns it as `data`. Throws the Failure `conflict` if the email or the name is
 * taken, or if the profile is unknown.
 */
export async function insertUsuario(sql: Sql, usuario: Preparado<UsuarioNuevo>, caller: Caller) {
  const call = sql`select insert_usuario(${usuario}, ${caller}) as answer`
  return write<{ data: Usuario }>(call, FAILURES)
}

/** The name of the hosted image that is no longer needed, or null if there is none. */
interface ImagenAnterior {
  imagenAnterior: string | null
}

/**
 * Overwrites a user. If the password or the image is missing, the stored one stays. A new password
 * and a deactivation end all sessions of the user.
 *
 * Returns as `data` the user, or null if the id is unknown, and as `imagenAnterior` the name of the
 * hosted image that a new image replaces. Throws what insertUsuario throws.
 */
export async function updateUsuario(
  sql: Sql,
  id: number,
  cambios: Preparado<UsuarioEditado>,
  caller: Caller,
) {
  const call = sql`select update_usuario(${id}, ${cambios}, ${caller}) as answer`
  return write<ImagenAnterior & { data: Usuario | null }>(call, FAILURES)
}

/** Removes a user. Returns as `imagenAnterior` the name of the user's hosted image. */
export async function deleteUsuario(sql: Sql, id: number, caller: Caller) {
  const call = sql`select delete_usuario(${id}, ${caller}) as answer`
  return write<ImagenAnterior>(call)
}

/**
 * Throws the Failures that insertUsuario (`id` null) or updateUsuario would throw now because of
 * the caller or the profiles. It is called before a hash or an upload, so that neither is done for
 * a write that would be refused. The write itself decides again.
 */
export async function checkUsuarioWrite(
  sql: Sql,
  id: number | null,
  idPerfil: number,
  caller: Caller,
): Promise<void> {
  const call = sql`select begin_write_usuario(${id}, ${idPerfil}, ${caller}) as answer`
  await write(call, FAILURES)
}
