import type { PostgresError, Sql as PostgresSql } from 'postgres'
import { Failure, type FailureCode, forbidden, unauthenticated } from './failure.js'

export type Sql = PostgresSql

/**
 * Who writes, for sql/transactions/begin_write.sql to decide about once more: the user, the version
 * of the session, and what the endpoint needs. Without `enforced` the client decides.
 */
export type Actor = {
  id: number
  ver: number
  modulo: string | null
  accion: string | null
  enforced: boolean
}

/** Rows of a page, fixed by the contract (section 8). */
export const PAGE_SIZE = 5

/** Rows before `page`, which counts from 1. */
export const offset = (page: number) => (page - 1) * PAGE_SIZE

/** The pages that `rows` rows fill; none for no rows. */
export const pageCount = (rows: number) => Math.ceil(rows / PAGE_SIZE)

/** The LIKE pattern that finds `search` anywhere; `%`, `_` and `\` in it are ordinary characters. */
export const contains = (search: string) => `%${search.replace(/[\\%_]/g, '\\$&')}%`

/** The database has not answered in time; what was asked may be done all the same if it was sent. */
export class DatabaseSilence extends Error {
  constructor(readonly isSent = true) {
    super(isSent ? 'the database has not answered in time' : 'no connection was free in time')
  }
}

/**
 * Whether a write that failed with `error` may have been carried out all the same: the database
 * fell silent or went away after the write had been sent.
 */
export function mayHaveHappened(error: unknown): boolean {
  if (error instanceof DatabaseSilence) return error.isSent
  const { code = '' } = error as { code?: string }
  return ['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'ECONNRESET', 'EPIPE'].includes(code)
}

/**
 * For `.catch()` at the query that can violate the constraint `name`: turns that violation into a
 * Failure, and throws everything else on unchanged.
 */
export function onConstraint(name: string, code: FailureCode, message?: string) {
  return (error: unknown): never => {
    if (isPostgresError(error) && error.constraint_name === name) {
      throw new Failure(code, message)
    }
    throw error
  }
}

/**
 * For `.catch()` at a write: turns the refusals of sql/transactions/begin_write.sql into the Failures
 * `forbidden` and `unauthenticated`, and throws everything else on unchanged.
 */
export function onRefusal(error: unknown): never {
  if (isPostgresError(error) && error.code === 'LL403') throw forbidden()
  if (isPostgresError(error) && error.code === 'LL401') throw unauthenticated()
  throw error
}

const isPostgresError = (error: unknown): error is PostgresError =>
  error instanceof Error && error.name === 'PostgresError'
