import type { Permission, Sesion } from './schemas.js'

/**
 * The caller of a request, and what each write passes to the database about the caller. In the
 * database, begin_write locks the caller's row and checks again whether the caller may write
 * (sql/functions/begin_write.sql).
 *
 * If `enforced` is true, many writes are forbidden if the profile that they change, or the profile
 * of the user that they write, has a permission that the actor's profile lacks. An administrator's
 * profile counts as one that has such a permission, unless the actor is an administrator.
 */
export interface Actor extends Sesion, Partial<Permission> {
  /**
   * Whether permissions are checked. It is false with AUTHORIZATION=client, and if the endpoint needs
   * only a session.
   */
  enforced: boolean
  /** The client's address, for the audit. */
  ip: string
  /** The id of the request, for the audit. */
  idPeticion: string
}
