import {
  OptionalKind,
  type SchemaOptions,
  type TObject,
  type TSchema,
  Type,
} from '@sinclair/typebox'
import { Failure } from '../answers/failures.js'
import {
  type Constraint,
  type MessageKey,
  mustBeBoolean,
  mustBeId,
  mustBeOneOf,
  mustBePage,
  mustBeStorable,
  mustBeText,
  mustHaveAtMost,
  required,
  requiredAndNotBlank,
  requiredAndNotEmpty,
} from './constraints.js'

/**
 * The contract's texts for the constraints of a field, by the key of the constraint, or one text
 * for all of them.
 */
type Messages = Partial<Record<MessageKey, string>> | string

/** The options of a field. All other keys are further keywords of its JSON Schema. */
interface FieldOptions<T> extends SchemaOptions {
  /** The texts that replace the constraints' own messages. */
  messages?: Messages
  /**
   * Returns what the handler gets for a valid value, or throws a Failure. By default the handler
   * gets the value itself.
   */
  decode?(value: unknown): T
}

/**
 * Returns the schema of a field. Handlers get a value of the type `T`. Requests are checked by
 * `constraints`, in their order. The JSON Schema is for the OpenAPI document only. The document
 * does not contain the function `read` of the schema, because JSON has no functions.
 */
export function field<T>(
  constraints: readonly Constraint[],
  { messages = {}, decode, ...keywords }: FieldOptions<T>,
) {
  /**
   * Returns the decoded value of the field, or undefined if it is optional and missing. Throws the
   * Failure of the first constraint that the value violates, or that of `decode`.
   */
  function read(name: string, value: unknown, isOptional: boolean) {
    const violated = constraints.find((constraint) => !constraint.isSatisfied(value))
    if (violated) {
      const { key, message } = violated
      if (key === 'missing' && isOptional) return undefined
      const text = typeof messages === 'string' ? messages : key && messages[key]
      if (text !== undefined) throw new Failure('invalid', text)
      throw new Failure('malformed', message.replace('%s', name))
    }
    return decode ? decode(value) : value
  }

  const schemas = constraints.map(({ schema }) => schema)
  return Type.Unsafe<T>(Object.assign({ read }, ...schemas, keywords))
}

/**
 * Returns the decoded fields of an object. A value that is not an object has none of them. Throws
 * the Failure of the first invalid field, in the order of the schema. Failures for which the
 * contract (section 7) has a text come before all others.
 */
export function readObject({ properties }: TObject, value: unknown) {
  const sent = Object(value)
  const values: Record<string, unknown> = {}
  const failures: Failure[] = []

  for (const [name, schema] of Object.entries(properties)) {
    try {
      values[name] = schema.read(name, sent[name], OptionalKind in schema)
    } catch (error) {
      failures.push(error as Failure)
    }
  }
  const failure = failures.find(({ code }) => code === 'invalid') ?? failures[0]
  if (failure) throw failure
  return values
}

/** The largest value of an integer column in PostgreSQL, and so the largest id. */
const MAX_ID = 2_147_483_647
/** Handlers get this id for every whole number that cannot be an id. No row has it. */
export const UNKNOWN_ID = -1

function toId(value: unknown) {
  const id = Number(value)
  return id >= 1 && id <= MAX_ID ? id : UNKNOWN_ID
}

/**
 * Returns the schema of an id: a whole number other than 0, or the text of one. Handlers get a
 * number that fits an integer column.
 */
export const Id = (description: string, messages?: Messages) =>
  field([requiredAndNotEmpty, mustBeId], {
    messages,
    decode: toId,
    maximum: MAX_ID,
    description,
    // No row has this id, so an example that is sent as it is changes nothing.
    examples: [MAX_ID],
  })

/** Returns the schema of an optional query parameter that is an id. `/docs` does not prefill it. */
export const QueryId = (description: string) =>
  Type.Optional({ ...Id(description), examples: undefined })

/** Returns the schema of a field of a body that may be missing or null. Both mean the same. */
export const Omissible = <T extends TSchema>(schema: T) =>
  Type.Optional({ ...schema, type: [schema.type, 'null'] })

/** Returns the schema of a boolean. A text like 'true' and a number like 1 are not accepted. */
export const Bool = (description: string) =>
  field<boolean>([required, mustBeBoolean], { description })

interface TextOptions extends FieldOptions<string> {
  /** The largest number of characters (code points), 255 by default. */
  max?: number
  /**
   * The constraint that decides which values count as missing. By default an empty or blank text is
   * one of them.
   */
  presence?: Constraint
  /** Constraints that are checked after those of every text. */
  further?: Constraint[]
}

/** Returns the schema of a text that is stored. */
export function Text({
  max = 255,
  presence = requiredAndNotBlank,
  further = [],
  ...rest
}: TextOptions) {
  return field<string>(
    [presence, mustBeText, mustBeStorable, mustHaveAtMost(max), ...further],
    rest,
  )
}

/**
 * The query parameter `page`: a whole number of at least 1 (contract, section 8). No list has
 * MAX_ID pages, so handlers get MAX_ID for every greater number.
 */
export const PageNumber = Type.Optional(
  field([requiredAndNotEmpty, mustBePage], {
    decode: (value) => Math.min(Number(value), MAX_ID),
    default: 1,
    description: 'Página',
  }),
)

/**
 * The query parameter `search`: a text that the rows must contain. Upper and lower case of ASCII
 * and Spanish letters are not distinguished.
 */
export const Search = Type.Optional(
  Text({ presence: requiredAndNotEmpty, description: 'Texto que contiene' }),
)

/** Returns the schema of a query parameter that is `true` or `false`. Handlers get a boolean. */
export const QueryBoolean = (description: string) =>
  Type.Optional(
    field([requiredAndNotEmpty, mustBeOneOf(['true', 'false'])], {
      decode: (value) => value === 'true',
      description,
    }),
  )
