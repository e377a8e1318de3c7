import { isPostgresError } from '../database/sql.js'
import { Failure } from '../http/failures.js'

/** Why a login was refused. */
export type LoginReason = 'captcha' | 'missing' | 'unknown' | 'inactive' | 'password'

export interface FailureDetails {
  /** What a caller who may not do something lacks. */
  needs?: object
  reason?: LoginReason
  /** The user whose name a refused login has given. */
  target?: number
}

/** A Failure with details that stand in the audit line and that the client does not see. */
export class AuditedFailure extends Failure {
  constructor(
    readonly details: FailureDetails,
    ...failure: ConstructorParameters<typeof Failure>
  ) {
    super(...failure)
  }
}

/** Returns the Failure for a caller who may not do something. `needs` says what the caller lacks. */
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
