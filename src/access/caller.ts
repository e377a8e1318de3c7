import type { Permission, Sesion } from './schemas.js'

/**
 * Who has sent a request. Each write passes this to the database as `p_actor`. In the
 * database, begin_write locks the caller's row and checks again whether the caller may write
 * (sql/functions/begin_write.sql).
 *
 * If `enforced` is true, the four rules in README.md apply to this actor.
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
