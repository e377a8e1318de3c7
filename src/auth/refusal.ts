import { isPostgresError } from '../database/sql.js'
import { Failure } from '../http/failures.js'

/** The reasons for which a login is refused. */
export type LoginReason =
  /** The captcha service has rejected the captcha token, or the token is missing or malformed. */
  | 'captcha'
  /** The name or the password is missing. */
  | 'missing'
  /** No user has the name. */
  | 'unknown'
  /** The user is inactive. */
  | 'inactive'
  /** The password is wrong. */
  | 'password'

/** The details of a failure that only the audit line contains, and not the answer. */
export interface FailureDetails {
  /**
   * What would have sufficed for the request: the permission that the caller lacks, an
   * administrator's profile, or an origin that CORS_ORIGIN lists.
   */
  needs?: object
  /** Why a login was refused. */
  reason?: LoginReason
  /** In a login, the id of the user who has the name in the body. */
  target?: number
}

/** A Failure with details for the audit line, which the client does not see. */
export class AuditedFailure extends Failure {
  constructor(
    readonly details: FailureDetails,
    ...failure: ConstructorParameters<typeof Failure>
  ) {
    super(...failure)
  }
}

/**
 * Returns the Failure `forbidden`. The audit line contains `needs` (see FailureDetails). By
 * default, this is an administrator's profile.
 */
export const forbidden = (needs: object = { administrador: true }) =>
  new AuditedFailure({ needs }, 'forbidden')

/**
 * A function for the `.catch()` of a write. Throws the Failure `forbidden` for the SQLSTATE LL403,
 * and `unauthenticated` for LL401 (sql/README.md). Rethrows every other error.
 */
export function onRefusal(error: unknown): never {
  if (!isPostgresError(error)) throw error
  if (error.code === 'LL403') throw forbidden()
  if (error.code === 'LL401') throw new Failure('unauthenticated')
  throw error
}
