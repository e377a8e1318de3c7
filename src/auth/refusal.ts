import { isPostgresError } from '../database/sql.js'
import { Failure } from '../http/failures.js'

/** The reasons for which a login is refused. */
export type LoginReason = 'captcha' | 'missing' | 'unknown' | 'inactive' | 'password'

/** The details of a failure that only the audit line contains, and not the answer. */
export interface FailureDetails {
  /** What a forbidden caller lacks: the permission, the administrator flag, or a listed origin. */
  needs?: object
  /** Why a login was refused. */
  reason?: LoginReason
  /** The id of the user with the name that was sent in a login. */
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
 * Returns the Failure `forbidden`. The audit line contains `needs`, which is what the caller lacks.
 */
export const forbidden = (needs: object = { administrador: true }) =>
  new AuditedFailure({ needs }, 'forbidden')

/**
 * A function for the `.catch()` of a write. Throws the Failure `forbidden` for the SQLSTATE LL403,
 * and `unauthenticated` for LL401 (sql/README.md). Rethrows every other error.
 */
export function onRefusal(error: unknown): never {
  if (isPostgresError(error) && error.code === 'LL403') throw forbidden()
  if (isPostgresError(error) && error.code === 'LL401') throw new Failure('unauthenticated')
  throw error
}
