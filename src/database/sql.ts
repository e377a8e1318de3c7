import postgres from 'postgres'
import { Failure } from '../http/answers/failures.js'

/** How long the answer to a statement may take, in milliseconds. */
const ANSWER_TIMEOUT = 4500

/**
 * A value in a statement: a parameter, or a fragment of the statement (see `fragment`). For a
 * parameter of the type jsonb, an object or an array is sent as JSON.
 */
export type Value = string | number | boolean | null | object

/**
 * The tag of the template literals for statements. A statement is sent once, when it is awaited for
 * the first time. `Rows` is the type of the array of rows.
 */
export type Sql = <Rows extends readonly object[] = Record<string, unknown>[]>(
  pieces: TemplateStringsArray,
  ...values: Value[]
) => Promise<Rows>

/**
 * The tag of the template literals for fragments of statements, which may have values themselves.
 * Make a fragment without values once: postgres.js makes a whole query of each fragment, and V8 is
 * slow to free it. Never await a fragment, because that would send it.
 */
export const fragment: (...template: Parameters<Sql>) => Value = postgres({
  // Otherwise postgres.js would read PGTARGETSESSIONATTRS, and throw if it does not know the value.
  target_session_attrs: 'primary',
})

/** The condition that all rows satisfy. */
export const ALWAYS = fragment`true`

/** Thrown by withTimeout. The operation may still succeed. */
export class AnswerTimeout extends Error {}

/**
 * Returns what `answer` resolves to. Throws AnswerTimeout after `timeout` milliseconds, by default
 * after ANSWER_TIMEOUT.
 */
export function withTimeout<T>(answer: Promise<T>, timeout = ANSWER_TIMEOUT): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new AnswerTimeout('no answer in time')), timeout)
    answer.finally(() => clearTimeout(timer)).then(resolve, reject)
  })
}

/** Thrown if a statement could not be sent. The server has never received it. */
export class StatementNotSent extends Error {
  constructor(cause: Error) {
    super(`the statement was not sent to the database: ${cause.message}`, { cause })
  }
}

/**
 * Returns whether the server may have executed a write that has failed with `error`. PgBouncer
 * sends an error of class 08 when it loses its connection to the server. The server may have
 * executed the write before that.
 */
export function mayHaveHappened(error: unknown) {
  if (error instanceof Failure || error instanceof StatementNotSent) return false
  return !(error instanceof postgres.PostgresError) || error.code.startsWith('08')
}
