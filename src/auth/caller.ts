/**
 * The caller as every write passes it to the database. There sql/functions/begin_write.sql locks
 * the caller's row and decides once more whether the caller may write.
 */
export interface Actor {
  /** The id of the user. */
  id: number
  /** The version of the user's sessions. */
  ver: number
  /**
   * The permission that the endpoint needs. `modulo` and `accion` are null if any session will do.
   */
  modulo: string | null
  accion: string | null
  /** Whether the service checks permissions. It is false with AUTHORIZATION=client. */
  enforced: boolean
}

/** The caller of a request as stored in the database. */
export interface Caller extends Actor {
  nombre: string
  idPerfil: number
  /** The name of the profile. */
  perfil: string
  /** Whether the profile is an administrator's. */
  administrador: boolean
  /**
   * The version of the permission map of the profile that `config.versionOf` points to; null if the
   * route has no `versionOf` or the profile does not exist.
   */
  versionPermisos: string | null
}
