import type { JSONValue, PendingQuery, PostgresError, Sql as PostgresSql, Row } from 'postgres'
import { Failure, type FailureArguments } from '../http/failures.js'

/** The interface of postgres.js, for what the pool does not offer: transactions and scripts. */
export type DriverSql = PostgresSql

/** What a statement may contain: parameters, and other statements as parts of its text. */
export type Value = string | number | boolean | null | Json | Statement<unknown>

/** A value that is sent as jsonb. */
export class Json {
  constructor(readonly value: object) {}
}

/** The text of a statement between its values, and the values. */
export interface Template {
  readonly strings: TemplateStringsArray
  readonly values: readonly Value[]
}

/**
 * A template that is sent once, when it is first awaited. A statement inside of another one is a
 * part of that one's text, and is not sent by itself.
 */
export class Statement<Rows> implements Template, PromiseLike<Rows> {
  #answer: Promise<Rows> | undefined

  constructor(
    readonly strings: TemplateStringsArray,
    readonly values: readonly Value[],
    private readonly ask: (template: Template) => Promise<unknown>,
  ) {}

  #send() {
    this.#answer ??= this.ask(this) as Promise<Rows>
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

/** What query functions write their statements with. `Rows` is the array of rows they expect. */
export interface Sql {
  <Rows extends readonly object[] = Record<string, unknown>[]>(
    strings: TemplateStringsArray,
    ...values: readonly Value[]
  ): Statement<Rows>
  json(value: object): Json
}

/** The template as a postgres.js query, which is sent when it is awaited. */
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

/** A statement was sent, and no answer came in time. The server may have carried it out. */
export class DatabaseTimeout extends Error {
  override message = 'the database has not answered in time'
}

/** A statement was not sent, for this reason; the server has never seen it. */
export class StatementNotSent extends Error {
  constructor(reason: Error) {
    super(`the statement was not sent to the database: ${reason.message}`, { cause: reason })
  }
}

/** Whether a write that failed with `error` may have been carried out all the same. */
export const mayHaveHappened = (error: unknown) =>
  !(error instanceof Failure) && !(error instanceof StatementNotSent) && !isPostgresError(error)

/**
 * For `.catch()` at the query that can violate the constraint `name`. Throws the Failure for that
 * violation, and rethrows every other error.
 */
export function onConstraint(name: string, ...failure: FailureArguments) {
  return (error: unknown): never => {
    if (isPostgresError(error) && error.constraint_name === name) throw new Failure(...failure)
    throw error
  }
}

/** Whether the server itself has refused a statement. */
export const isPostgresError = (error: unknown): error is PostgresError =>
  error instanceof Error && error.name === 'PostgresError'
