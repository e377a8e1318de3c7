import type { PostgresError, Sql as PostgresSql } from 'postgres'
import { Failure, type FailureCode } from '../http/failures.js'

export type Sql = PostgresSql

/** Rows of a page, fixed by the contract (section 8). */
export const PAGE_SIZE = 5

/** Rows before `page`, which counts from 1. */
export const offset = (page: number) => (page - 1) * PAGE_SIZE

/** The pages that `rows` rows fill; none for no rows. */
export const pageCount = (rows: number) => Math.ceil(rows / PAGE_SIZE)

/** The LIKE pattern that finds `search` anywhere; `%`, `_` and `\` in it are ordinary characters. */
export const contains = (search: string) => `%${search.replace(/[\\%_]/g, '\\$&')}%`

/** The database has not answered in time; what was asked may be done all the same. */
export class DatabaseTimeout extends Error {
  override message = 'the database has not answered in time'
}

/** Whether a write that failed with `error` may have been carried out all the same. */
export const mayHaveHappened = (error: unknown) =>
  !(error instanceof Failure) && !isPostgresError(error)

/**
 * For `.catch()` at the query that can violate the constraint `name`: turns that violation into a
 * Failure, and throws everything else on unchanged.
 */
export function onConstraint(name: string, code: FailureCode, message?: string) {
  return (error: unknown): never => {
    if (isPostgresError(error) && error.constraint_name === name) throw new Failure(code, message)
    throw error
  }
}

/** Whether the server itself has refused a statement. */
export const isPostgresError = (error: unknown): error is PostgresError =>
  error instanceof Error && error.name === 'PostgresError'
