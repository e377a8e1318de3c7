import type { JSONValue, PendingQuery, PostgresError, Sql as PostgresSql, Row } from 'postgres'
import { Failure, type FailureArguments } from '../http/failures.js'

/**
 * How long a statement may take until its answer, in milliseconds. Its wait for a connection is included.
 */
export const ANSWER_TIMEOUT = 4500

/** The interface of postgres.js. It offers transactions and scripts, which the pool does not. */
export type DriverSql = PostgresSql

/** A value in a statement: a parameter, or another statement that becomes a part of the text. */
export type Value = string | number | boolean | null | Json | Statement<unknown>

/** A value that is sent as jsonb. */
export class Json {
  constructor(readonly value: object) {}
}

/** A statement: the parts of its text, and the values between them. */
export interface Template {
  readonly strings: TemplateStringsArray
  readonly values: readonly Value[]
}

/**
 * A statement. It is sent once, when it is awaited for the first time. A statement that is a value
 * of another statement is not sent itself, but becomes a part of the other statement's text.
 */
export class Statement<Rows> implements Template, PromiseLike<Rows> {
  #answer: Promise<Rows> | undefined

  constructor(
    readonly strings: TemplateStringsArray,
    readonly values: readonly Value[],
    private readonly query: (template: Template) => Promise<unknown>,
  ) {}

  #send() {
    this.#answer ??= this.query(this) as Promise<Rows>
    return this.#answer
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting a statement sends it.
  then<Result = Rows, Caught = never>(
    onRows?: ((rows: Rows) => Result | PromiseLike<Result>) | null,
    onError?: ((error: unknown) => Caught | PromiseLike<Caught>) | null,
  ): Promise<Result | Caught> {
    return this.#send().then(onRows, onError)
  }

  catch<Caught>(onError: (error: unknown) => Caught | PromiseLike<Caught>) {
    return this.#send().catch(onError)
  }
}

/** The tag of the template literals for statements. `Rows` is the type of the array of rows. */
export interface Sql {
  <Rows extends readonly object[] = Record<string, unknown>[]>(
    strings: TemplateStringsArray,
    ...values: readonly Value[]
  ): Statement<Rows>
  json(value: object): Json
}

/** Returns the template as a query of postgres.js, which is sent when it is awaited. */
export function toDriverQuery(
  driver: DriverSql,
  { strings, values }: Template,
): PendingQuery<Row[]> {
  return driver(strings, ...values.map((value) => toDriverValue(driver, value)))
}

function toDriverValue(driver: DriverSql, value: Value) {
  if (value instanceof Json) return driver.json(value.value as JSONValue)
  if (value instanceof Statement) return toDriverQuery(driver, value)
  return value
}

/** Thrown if a statement has no answer in time. If it was sent, the server may have executed it. */
export class DatabaseTimeout extends Error {
  override message = 'the database has not answered in time'
}

/** Thrown if a statement could not be sent. The server has never received it. */
export class StatementNotSent extends Error {
  constructor(reason: Error) {
    super(`the statement was not sent to the database: ${reason.message}`, { cause: reason })
  }
}

/** Returns whether the server may have executed a write that has failed with `error`. */
export function mayHaveHappened(error: unknown) {
  if (error instanceof Failure || error instanceof StatementNotSent) return false
  return !isPostgresError(error) || isOfPooler(error)
}

/**
 * Returns whether the error comes from a pooler, and not from the server. PgBouncer sends an error of
 * class 08 when it loses its connection to the server. The server may have executed the statement
 * before that.
 */
export const isOfPooler = ({ code }: PostgresError) => code.startsWith('08')

/**
 * Returns a function for the `.catch()` of a query that may violate the constraint `name`. The
 * function throws the given Failure for that violation, and rethrows every other error.
 */
export function onConstraint(name: string, ...failure: FailureArguments) {
  return (error: unknown): never => {
    const isViolation = isPostgresError(error) && error.constraint_name === name
    throw isViolation ? new Failure(...failure) : error
  }
}

/** Returns whether the error was sent by the server, or by a pooler in its name. */
export const isPostgresError = (error: unknown): error is PostgresError =>
  error instanceof Error && error.name === 'PostgresError'
