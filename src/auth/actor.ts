import { isPostgresError } from '../database/sql.js'
import { Failure } from '../http/failures.js'

/** The Failure for a caller who may not do something. `needs` is for the log: what was lacking. */
export const forbidden = (needs: object = { administrador: true }) =>
  Object.assign(new Failure('forbidden'), { needs })

/**
 * The caller of a write as the session was read. sql/functions/begin_write.sql takes it and decides
 * once more, under its locks.
 */
export type Actor = {
  /** The user. */
  id: number
  /** The version of the user's sessions. */
  ver: number
  /** The permission that the endpoint needs; both are null where any session will do. */
  modulo: string | null
  accion: string | null
  /** Whether the server checks permissions; false with AUTHORIZATION=client. */
  enforced: boolean
}

/**
 * For `.catch()` at a write. Throws the Failure `forbidden` for the SQLSTATE LL403 and
 * `unauthenticated` for LL401 (sql/README.md); rethrows every other error.
 */
export function onRefusal(error: unknown): never {
  if (isPostgresError(error) && error.code === 'LL403') throw forbidden()
  if (isPostgresError(error) && error.code === 'LL401') throw new Failure('unauthenticated')
  throw error
}
