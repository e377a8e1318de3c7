/**
 * The caller as every write checks it: sql/functions/begin_write.sql takes it and decides once more,
 * under its locks.
 */
export interface Actor {
  /** The user. */
  id: number
  /** The version of the user's sessions. */
  ver: number
  /** The permission that the endpoint needs; both are null if any session will do. */
  modulo: string | null
  accion: string | null
  /** Whether the server checks permissions; false with AUTHORIZATION=client. */
  enforced: boolean
}

/** The caller of a request as the database has it. */
export interface Caller extends Actor {
  nombre: string
  idPerfil: number
  /** The name of the profile. */
  perfil: string
  /** Whether the profile is an administrator's. */
  administrador: boolean
  /** The version of the permission map that `config.versionOf` points to; null without one. */
  versionPermisos: string | null
}
