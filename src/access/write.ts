import type { Sql, Value } from '../database/sql.js'
import { Failure, type FailureArguments } from '../http/answers/failures.js'
import { forbidden } from './refusal.js'

/** A Failure for each constraint that a write may violate, by the name of the constraint. */
export type FailureByConstraint = Record<string, FailureArguments>

/**
 * Calls a function of sql/transactions, or one that begins a write, and returns its answer. `call`
 * is a part of a statement, like sql`delete_perfil(…)`.
 *
 * For an SQLSTATE of the service's own (sql/README.md) it throws a Failure: `unauthenticated` for
 * LL401, `forbidden` for LL403, and `changed` for LL412. For a violated constraint it throws the
 * Failure in `failures`. It rethrows every other error.
 */
export async function write<Answer>(
  sql: Sql,
  call: Value,
  failures: FailureByConstraint = {},
): Promise<Answer> {
  const [row] = await sql<[{ answer: Answer }]>`select ${call} as answer`.catch((error) => {
    const { code, detail, constraint_name = '' } = error
    if (code === 'LL401') throw new Failure('unauthenticated')
    if (code === 'LL403') throw forbidden(JSON.parse(detail))
    if (code === 'LL412') throw new Failure('changed')
    const failure = failures[constraint_name]
    throw failure ? new Failure(...failure) : error
  })
  return row.answer
}
