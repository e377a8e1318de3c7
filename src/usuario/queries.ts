import { type Actor, forbidden, onRefusal } from '../auth/actor.js'
import { contains, offset, onConstraint, PAGE_SIZE, pageCount, type Sql } from '../database/sql.js'
import type { ImagenAlojada } from './imagen.js'
import type {
  Usuario,
  UsuarioEditado,
  UsuarioFiltro,
  UsuarioNuevo,
  UsuarioVisto,
} from './schemas.js'

/** One page of the users that the filter lets through, and how many pages there are. */
export async function listUsuarios(
  sql: Sql,
  { page = 1, search, idPerfil, estado }: UsuarioFiltro,
) {
  const matches = sql`
    ${search === undefined ? sql`true` : matchesSearch(sql, search)}
    and ${idPerfil === undefined ? sql`true` : sql`"idPerfil" = ${idPerfil}`}
    and ${estado === undefined ? sql`true` : sql`"idEstadoUsuario" = ${estado}`}
  `
  const [data, [total]] = await Promise.all([
    sql<UsuarioVisto[]>`
      select ${columns(sql)}
      from usuario
      join perfil on perfil.id = "idPerfil"
      where ${matches}
      order by usuario.id desc
      limit ${PAGE_SIZE} offset ${offset(page)}
    `,
    sql<{ rows: number }[]>`select count(*)::integer as rows from usuario where ${matches}`,
  ])
  return { data, totalPages: pageCount(total?.rows ?? 0) }
}

const columns = (sql: Sql) => sql`
  usuario.id, "strNombreUsuario", "idPerfil", "strCorreo", "strNumeroCelular", "idEstadoUsuario",
  "imagenUrl", "strNombrePerfil" as "nombrePerfil"
`

const matchesSearch = (sql: Sql, search: string) => sql`(
  fold_case("strNombreUsuario") like fold_case(${contains(search)})
  or fold_case("strCorreo") like fold_case(${contains(search)})
)`

/**
 * One user, undefined for an unknown id. Throws the Failure `forbidden` when the user's profile
 * holds more than the actor's, unless it is the actor.
 */
export async function findUsuario(
  sql: Sql,
  actor: Actor,
  id: number,
): Promise<UsuarioVisto | undefined> {
  const [row] = await sql<(UsuarioVisto & { alcanzable: boolean })[]>`
    select ${columns(sql)}, usuario.id = ${actor.id} or may_reach(${actor.enforced ? actor.id : null}, "idPerfil")
        as alcanzable
    from usuario
    join perfil on perfil.id = "idPerfil"
    where usuario.id = ${id}
  `
  if (row?.alcanzable === false) throw forbidden()
  return row
}

/** What is stored of a user who is sent: the image as the host has it. */
type ConImagen<T> = Omit<T, 'imagenBase64'> & { imagen: ImagenAlojada | undefined }

/**
 * Adds a user, the password as its hash. Throws the Failures `conflict` for a taken email or name
 * or an unknown profile, and `forbidden` when the profile holds more than the actor's.
 */
export async function insertUsuario(
  sql: Sql,
  actor: Actor,
  usuario: ConImagen<UsuarioNuevo>,
): Promise<Usuario> {
  const [creado] = await sql<[Usuario]>`
    select id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
      "idEstadoUsuario", "imagenUrl"
    from insert_usuario(${sql.json(actor)}, ${usuario.strNombreUsuario}, ${usuario.idPerfil},
      ${usuario.strPwd}, ${usuario.strCorreo}, ${usuario.strNumeroCelular ?? null},
      ${usuario.idEstadoUsuario ?? true}, ${usuario.imagen?.url ?? null},
      ${usuario.imagen?.publicId ?? null})
  `.catch(onUsuarioFailure)
  return creado
}

/**
 * Overwrites a user, password and image where there is a new one; gives undefined for an unknown
 * id, else the user and the hosted image that is replaced. Throws as insertUsuario, `forbidden` also
 * for the profile that the user is in. A new password ends the user's sessions.
 */
export async function updateUsuario(
  sql: Sql,
  actor: Actor,
  id: number,
  cambios: ConImagen<UsuarioEditado>,
): Promise<{ usuario: Usuario; reemplazada: string | null } | undefined> {
  const [row] = await sql<(Usuario & { reemplazada: string | null })[]>`
    select (actualizado).id, (actualizado)."strNombreUsuario", (actualizado)."idPerfil",
      (actualizado)."strPwd", (actualizado)."strCorreo", (actualizado)."strNumeroCelular",
      (actualizado)."idEstadoUsuario", (actualizado)."imagenUrl", reemplazada
    from update_usuario(${sql.json(actor)}, ${id}, ${cambios.strNombreUsuario}, ${cambios.idPerfil},
      ${cambios.strPwd ?? null}, ${cambios.strCorreo}, ${cambios.strNumeroCelular ?? null},
      ${cambios.idEstadoUsuario}, ${cambios.imagen?.url ?? null},
      ${cambios.imagen?.publicId ?? null})
  `.catch(onUsuarioFailure)
  if (!row) return undefined
  const { reemplazada, ...usuario } = row
  return { usuario, reemplazada }
}

/**
 * Removes a user and gives the name of the hosted image, null without one; nothing happens for an
 * unknown id. Throws the Failure `forbidden` when the user's profile holds more than the actor's.
 */
export async function deleteUsuario(sql: Sql, actor: Actor, id: number): Promise<string | null> {
  const [row] = await sql<[{ publicId: string | null }]>`
    select delete_usuario(${sql.json(actor)}, ${id}) as "publicId"
  `.catch(onRefusal)
  return row.publicId
}

/**
 * Throws what insertUsuario (`id` null) or updateUsuario would now throw because of the profiles:
 * asked before a password is hashed or an image uploaded; what they ask themselves is what counts.
 */
export async function checkUsuarioWrite(
  sql: Sql,
  actor: Actor,
  id: number | null,
  idPerfil: number,
): Promise<void> {
  await sql`select begin_write_usuario(${sql.json(actor)}, ${id}, ${idPerfil})`.catch(
    onUsuarioFailure,
  )
}

const CORREO_REGISTRADO = 'El correo electrónico ya está registrado'
const NOMBRE_REGISTRADO = 'El nombre de usuario ya está registrado'
const PERFIL_DESCONOCIDO = 'El perfil indicado no existe'
/** What is said of the conflicts that a user can have. */
export const CONFLICTOS = [CORREO_REGISTRADO, NOMBRE_REGISTRADO, PERFIL_DESCONOCIDO]

const onCorreo = onConstraint('usuario_correo_unico', 'conflict', CORREO_REGISTRADO)
const onNombre = onConstraint('usuario_nombre_unico', 'conflict', NOMBRE_REGISTRADO)
const onPerfil = onConstraint('usuario_perfil_fk', 'conflict', PERFIL_DESCONOCIDO)

const onUsuarioFailure = (error: unknown) =>
  Promise.reject(error).catch(onRefusal).catch(onCorreo).catch(onNombre).catch(onPerfil)
