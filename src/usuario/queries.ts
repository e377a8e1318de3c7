import { type Actor, onConstraint, onRefusal, type Sql } from '../db.js'
import type { Usuario } from './schemas.js'

/** A user to be stored, the password as its hash. */
export interface UsuarioColumnas {
  strNombreUsuario: string
  idPerfil: number
  strPwd: string
  strCorreo: string
  strNumeroCelular?: string | undefined
  idEstadoUsuario?: boolean | undefined
  imagenUrl: string | undefined
}

/** A user to be overwritten; password and image stay as they are where undefined. */
export interface UsuarioCambios {
  strNombreUsuario: string
  idPerfil: number
  strCorreo: string
  strNumeroCelular?: string | undefined
  idEstadoUsuario: boolean
  strPwd: string | undefined
  imagenUrl: string | undefined
}

/**
 * Adds a user. Throws the Failures `conflict` for a taken email or name or an unknown profile, and
 * `forbidden` when the profile holds more than the actor's.
 */
export async function insertUsuario(
  sql: Sql,
  actor: Actor,
  usuario: UsuarioColumnas,
): Promise<Usuario> {
  const [creado] = await sql<[Usuario]>`
    select id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
      "idEstadoUsuario", "imagenUrl"
    from insert_usuario(${actor}, ${usuario.strNombreUsuario}, ${usuario.idPerfil},
      ${usuario.strPwd}, ${usuario.strCorreo}, ${usuario.strNumeroCelular ?? null},
      ${usuario.idEstadoUsuario ?? true}, ${usuario.imagenUrl ?? null})
  `.catch(onUsuarioFailure)
  return creado
}

/**
 * Overwrites a user; gives undefined for an unknown id. Throws as insertUsuario, `forbidden` also
 * for the profile that the user is in. A new password ends the user's sessions.
 */
export async function updateUsuario(
  sql: Sql,
  actor: Actor,
  id: number,
  cambios: UsuarioCambios,
): Promise<Usuario | undefined> {
  const [actualizado] = await sql<Usuario[]>`
    select id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
      "idEstadoUsuario", "imagenUrl"
    from update_usuario(${actor}, ${id}, ${cambios.strNombreUsuario}, ${cambios.idPerfil},
      ${cambios.strPwd ?? null}, ${cambios.strCorreo}, ${cambios.strNumeroCelular ?? null},
      ${cambios.idEstadoUsuario}, ${cambios.imagenUrl ?? null})
  `.catch(onUsuarioFailure)
  return actualizado
}

/**
 * Throws `forbidden` where insertUsuario (`id` null) or updateUsuario would now: asked before an
 * image is uploaded, while what they ask themselves is what counts.
 */
export async function checkUsuarioWrite(
  sql: Sql,
  actor: Actor,
  id: number | null,
  idPerfil: number,
): Promise<void> {
  await sql`select begin_write_usuario(${actor}, ${id}, ${idPerfil})`.catch(onRefusal)
}

const onCorreo = onConstraint(
  'usuario_correo_unico',
  'conflict',
  'El correo electrónico ya está registrado',
)
const onNombre = onConstraint(
  'usuario_nombre_unico',
  'conflict',
  'El nombre de usuario ya está registrado',
)
const onPerfil = onConstraint('usuario_perfil_fk', 'conflict', 'El perfil indicado no existe')

const onUsuarioFailure = (error: unknown) =>
  Promise.reject(error).catch(onRefusal).catch(onCorreo).catch(onNombre).catch(onPerfil)
