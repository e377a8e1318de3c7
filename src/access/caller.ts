import type { Sesion } from './schemas.js'

/**
 * The caller in the form in which each write passes it to the database. In the database,
 * begin_write locks the caller's row and checks again whether the caller may write
 * (sql/functions/begin_write.sql).
 *
 * If `enforced` is true, many writes are forbidden if the profile that they change, or the profile
 * of the user that they write, has a permission that the actor's profile lacks. An administrator's
 * profile counts as one that has such a permission, unless the actor is an administrator.
 */
export interface Actor {
  /** The id of the user. */
  id: number
  /** The version of the user's sessions. A logout, a new password and a deactivation raise it. */
  ver: number
  /** The permission that the endpoint needs. Both are null if any session is enough. */
  modulo: string | null
  accion: string | null
  /** Whether the service checks permissions. It is false with AUTHORIZATION=client. */
  enforced: boolean
  /** The client's address, for the audit. */
  ip: string
  /** The id of the request, for the audit. */
  idPeticion: string
}

/** The caller of a request, with the data that the database has for the user. */
export interface Caller extends Actor, Omit<Sesion, 'permitido'> {}
