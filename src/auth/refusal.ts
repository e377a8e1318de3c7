import { isPostgresError } from '../database/sql.js'
import { Failure } from '../http/failures.js'

/** Why a login was refused. */
export type LoginReason = 'captcha' | 'missing' | 'unknown' | 'inactive' | 'password'

/** What the audit line says about a failure and the answer does not. */
export interface FailureDetails {
  /** What a forbidden caller lacks: the permission, the administrator flag, or a listed origin. */
  needs?: object
  reason?: LoginReason
  /** The id of the user as whom the client tried to log in. */
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

/** Returns the Failure `forbidden`. `needs` says what the caller lacks, for the audit line. */
export const forbidden = (needs: object = { administrador: true }) =>
  new AuditedFailure({ needs }, 'forbidden')

/**
 * For `.catch()` at a write. Throws the Failure `forbidden` for the SQLSTATE LL403 and
 * `unauthenticated` for LL401 (sql/README.md); rethrows every other error.
 */
export function onRefusal(error: unknown): never {
  if (isPostgresError(error) && error.code === 'LL403') throw forbidden()
  if (isPostgresError(error) && error.code === 'LL401') throw new Failure('unauthenticated')
  throw error
}
