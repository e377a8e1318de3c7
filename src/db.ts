import postgres, { type PostgresError } from 'postgres'
import type { Config } from './config.js'
import { Failure, type FailureCode, forbidden } from './failure.js'

export type Sql = postgres.Sql

/** The user whose limits hold for a write; null for none. */
export type Actor = number | null

/** Rows of a page, fixed by the contract (section 8). */
export const PAGE_SIZE = 5

/** Rows before `page`, which counts from 1. */
export const offset = (page: number) => (page - 1) * PAGE_SIZE

/** The pages that `rows` rows fill; none for no rows. */
export const pageCount = (rows: number) => Math.ceil(rows / PAGE_SIZE)

/** The LIKE pattern that finds `search` anywhere; `%`, `_` and `\` in it are ordinary characters. */
export const contains = (search: string) => `%${search.replace(/[\\%_]/g, '\\$&')}%`

/** How long a statement may run, in milliseconds; less than the time limit of a request. */
const STATEMENT_TIMEOUT = 4000

/**
 * Opens the one pool. Connections are made when first needed; whoever calls this ends the pool.
 * A statement that overstays, a connection that can't be made in 3 s and a lost one all reject.
 */
export function openPool(config: Pick<Config, DatabaseKeys>): Sql {
  return postgres(config.databaseUrl, {
    max: config.databasePoolMax,
    prepare: config.databasePrepare,
    fetch_types: false,
    connect_timeout: 3,
    idle_timeout: 60,
    max_lifetime: 1800,
    // Without this the pause between attempts grows to 20 s, and the service stays away that long
    // after the database is back.
    backoff: () => 0.25,
    onnotice: () => {},
    // A pooler that can't keep prepared statements refuses these at start-up too.
    connection: {
      application_name: 'llavero',
      ...(config.databasePrepare && {
        statement_timeout: STATEMENT_TIMEOUT,
        idle_in_transaction_session_timeout: STATEMENT_TIMEOUT,
      }),
    },
  })
}
type DatabaseKeys = 'databaseUrl' | 'databasePoolMax' | 'databasePrepare'

/** How long a request waits for the database, in milliseconds. */
export const DATABASE_TIMEOUT = 4500

/** The same promise, but rejected when the database has not answered within DATABASE_TIMEOUT. */
export async function inTime<T>(query: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the database did not answer')), DATABASE_TIMEOUT)
  })
  return Promise.race([query, late]).finally(() => clearTimeout(timer))
}

/**
 * For `.catch()` at the query that can violate the constraint `name`: turns that violation into a
 * Failure, and throws everything else on unchanged.
 */
export function onConstraint(name: string, code: FailureCode, message: string) {
  return (error: unknown): never => {
    if (isPostgresError(error) && error.constraint_name === name) {
      throw new Failure(code, message)
    }
    throw error
  }
}

/**
 * For `.catch()` at a write: turns the refusal of sql/transactions/refuse.sql into the Failure
 * `forbidden`, and throws everything else on unchanged.
 */
export function onRefusal(error: unknown): never {
  if (isPostgresError(error) && error.code === 'LL403') throw forbidden()
  throw error
}

const isPostgresError = (error: unknown): error is PostgresError =>
  error instanceof Error && error.name === 'PostgresError'
