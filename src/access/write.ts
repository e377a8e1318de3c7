import type { PostgresError } from 'postgres'
import { isPostgresError, type Sql, type Value } from '../database/sql.js'
import { Failure, type FailureArguments } from '../http/answers/failures.js'
import { forbidden } from './refusal.js'

/** A Failure for each constraint that a write may violate, by the name of the constraint. */
export type Constraints = Record<string, FailureArguments>

/**
 * Calls a function of sql/transactions, or one that begins a write, and returns its answer. `call` is a statement's part, like
 * sql`delete_perfil(…)`.
 *
 * For an SQLSTATE of the service's own (sql/README.md) it throws a Failure: `unauthenticated` for LL401,
 * `forbidden` for LL403, and `changed` for LL412. For a violated constraint it throws
 * the one in `failures`, and every other error as it is.
 */
export async function write<Answer>(
  sql: Sql,
  call: Value,
  failures: Constraints = {},
): Promise<Answer> {
  const [row] = await sql<[{ answer: Answer }]>`select ${call} as answer`.catch((error) => {
    throw (isPostgresError(error) && failureOf(error, failures)) || error
  })
  return row.answer
}

/** Returns the Failure for an error of PostgreSQL, or undefined if there is none. */
function failureOf({ code, detail, constraint_name = '' }: PostgresError, failures: Constraints) {
  if (code === 'LL401') return new Failure('unauthenticated')
  if (code === 'LL403') return forbidden(detail && JSON.parse(detail))
  if (code === 'LL412') return new Failure('changed')
  const failure = failures[constraint_name]
  return failure && new Failure(...failure)
}
