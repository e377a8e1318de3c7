import { onConstraint, type Sql } from '../db.js'
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

/** Adds a user; throws the Failure `conflict` for a taken email or name or an unknown profile. */
export async function insertUsuario(sql: Sql, usuario: UsuarioColumnas): Promise<Usuario> {
  const [creado] = await sql<[Usuario]>`
    insert into usuario
      ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
       "idEstadoUsuario", "imagenUrl")
    values
      (${usuario.strNombreUsuario}, ${usuario.idPerfil}, ${usuario.strPwd}, ${usuario.strCorreo},
       ${usuario.strNumeroCelular ?? null}, ${usuario.idEstadoUsuario ?? true},
       ${usuario.imagenUrl ?? null})
    returning id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
      "idEstadoUsuario", "imagenUrl"
  `.catch(onUsuarioConstraint)
  return creado
}

/** Overwrites a user; gives undefined for an unknown id and throws as insertUsuario. */
export async function updateUsuario(
  sql: Sql,
  id: number,
  cambios: UsuarioCambios,
): Promise<Usuario | undefined> {
  const [actualizado] = await sql<Usuario[]>`
    update usuario
    set "strNombreUsuario" = ${cambios.strNombreUsuario}, "idPerfil" = ${cambios.idPerfil},
      "strCorreo" = ${cambios.strCorreo}, "strNumeroCelular" = ${cambios.strNumeroCelular ?? null},
      "idEstadoUsuario" = ${cambios.idEstadoUsuario},
      "strPwd" = coalesce(${cambios.strPwd ?? null}, "strPwd"),
      "imagenUrl" = coalesce(${cambios.imagenUrl ?? null}, "imagenUrl")
    where id = ${id}
    returning id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
      "idEstadoUsuario", "imagenUrl"
  `.catch(onUsuarioConstraint)
  return actualizado
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

const onUsuarioConstraint = (error: unknown) =>
  Promise.reject(error).catch(onCorreo).catch(onNombre).catch(onPerfil)
