import { isPostgresError } from '../database/sql.js'
import { Failure } from '../http/failures.js'

/** The refusal of whoever may not do something; for the log what that needs. */
export const forbidden = (needs: object = { administrador: true }) =>
  Object.assign(new Failure('forbidden'), { needs })

/**
 * Who writes, for sql/functions/begin_write.sql to decide about once more: the user, the version
 * of the session, and what the endpoint needs. Without `enforced` the client decides.
 */
export type Actor = {
  id: number
  ver: number
  modulo: string | null
  accion: string | null
  enforced: boolean
}

/**
 * For `.catch()` at a write: turns the refusals of sql/functions/begin_write.sql into the Failures
 * `forbidden` and `unauthenticated`, and throws everything else on unchanged.
 */
export function onRefusal(error: unknown): never {
  if (isPostgresError(error) && error.code === 'LL403') throw forbidden()
  if (isPostgresError(error) && error.code === 'LL401') throw new Failure('unauthenticated')
  throw error
}
