import { Failure, type FailureArguments } from '../http/answers/failures.js'
import { forbidden } from './refusal.js'

/** A Failure for each constraint that a write may violate, by the name of the constraint. */
export type FailureByConstraint = Record<string, FailureArguments>

/**
 * Returns the answer of `call`, a statement like sql`select delete_perfil(…) as answer`. The
 * statement calls a function of sql/transactions, or begin_write_usuario.
 *
 * Every write of a caller can throw the Failure `unauthenticated` (the caller's session has ended)
 * and `forbidden` (the caller lacks the permission of the endpoint, or one of the four rules in
 * README.md refuses the write), so the comments of the queries do not repeat them. A query can also
 * throw `changed` (LL412: the records have another version), and the Failure that `failures` has
 * for a violated constraint. Every other error is rethrown.
 */
export async function write<Answer>(
  call: Promise<Record<string, unknown>[]>,
  failures: FailureByConstraint = {},
) {
  const [row] = await call.catch((error) => {
    const { code, detail, constraint_name } = error
    if (code === 'LL401') throw new Failure('unauthenticated')
    if (code === 'LL403') throw forbidden(JSON.parse(detail))
    if (code === 'LL412') throw new Failure('changed')
    const failure = failures[constraint_name]
    throw failure ? new Failure(...failure) : error
  })
  return (row as { answer: Answer }).answer
}
