import type { Permission, Sesion } from './schemas.js'

/**
 * The caller of a request, and what each write passes to the database about the caller. In the
 * database, begin_write locks the caller's row and checks again whether the caller may write
 * (sql/functions/begin_write.sql).
 *
 * If `enforced` is true, an actor who is not an administrator may not write a profile that has a
 * permission which the actor's own profile lacks, or a user with such a profile. An administrator's
 * profile counts as one that has such a permission.
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
