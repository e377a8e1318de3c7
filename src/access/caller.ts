/** The payload of the token (contract, section 5). */
export interface TokenPayload {
  id: number
  idPerfil: number
  nombre: string
  /** The user's `versionSesion` when the token was issued. If it is missing, it was 0. */
  ver?: number
}

/**
 * The names of the system modules. The permissions for them decide who may use which endpoint.
 * sql/functions/is_modulo_de_sistema.sql has the same list.
 */
type ModuloDeSistema = 'USUARIO' | 'PERFIL' | 'MODULO' | 'PERMISOS'

/** The actions that a permission can allow. Each of them is a flag of a permission record. */
export const ACCIONES = [
  'bitAgregar',
  'bitEditar',
  'bitConsulta',
  'bitEliminar',
  'bitDetalle',
] as const
export type Accion = (typeof ACCIONES)[number]

/** The permission to carry out an action on the records of a system module. */
export interface Permission {
  modulo: ModuloDeSistema
  accion: Accion
}

/** What a request looks up in the database: the user in the token, and the permission it needs. */
export interface Lookup extends Partial<Permission> {
  id: number
  /** The version of the user's sessions. A logout, a new password and a deactivation raise it. */
  ver: number
}

/** The answer to a Lookup: the data of the user in the token. */
export interface Sesion {
  id: number
  nombre: string
  idPerfil: number
  perfil: string
  /** Whether the profile is an administrator's. */
  administrador: boolean
  /**
   * Whether the profile is an administrator's, or has the permission of the Lookup, if there is
   * one.
   */
  permitido: boolean
  /** The version of the profile's permission map. */
  versionPermisos: string
}

/**
 * Who has sent a request, and the permission it needs. Each write passes this to the database as
 * `p_actor`. In the database, begin_write locks the caller's row and checks again whether the
 * caller may write (sql/functions/begin_write.sql).
 */
export interface Caller extends Lookup {
  /**
   * Whether the permission and the four rules in README.md are checked. It is false with
   * AUTHORIZATION=client, and if the endpoint needs only a session.
   */
  enforced: boolean
  /** The client's address, for the audit. */
  ip: string
  /** The id of the request, for the audit. */
  idPeticion: string
}
