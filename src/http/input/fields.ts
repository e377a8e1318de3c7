import { type SchemaOptions, type TSchema, Type } from '@sinclair/typebox'
import {
  type Constraint,
  hasAtMost,
  isBoolean,
  isId,
  isOneOf,
  isPage,
  isStorable,
  isText,
  required,
  requiredAndNotBlank,
  requiredAndNotEmpty,
} from './constraints.js'

/**
 * The contract's texts for the constraints of a field, by the name of the constraint, or one text
 * for all of them.
 */
type Messages = Record<string, string> | string

/** The options of a field. All other keys are further keywords of its JSON Schema. */
interface FieldOptions<T> extends SchemaOptions {
  /** The texts that replace the constraints' own messages. */
  messages?: Messages
  /**
   * Returns what the handler gets for a valid value. By default the handler gets the value itself.
   */
  decode?(value: unknown): T
}

interface Rules extends Pick<FieldOptions<unknown>, 'messages' | 'decode'> {
  constraints: readonly Constraint[]
}

/**
 * The key of a field's rules. It is a symbol, so that they do not appear in the OpenAPI document.
 */
const RULES = Symbol('rules')

/**
 * Returns the schema of a field. Handlers get a value of the type `T`. Requests are checked by
 * `constraints`, in their order. The JSON Schema is for the OpenAPI document only.
 */
export function field<T>(
  constraints: readonly Constraint[],
  { messages, decode, ...keywords }: FieldOptions<T> = {},
) {
  const schema = Object.assign({}, ...constraints.map(({ schema }) => schema), keywords)
  return Type.Unsafe<T>({ ...schema, [RULES]: { constraints, messages, decode } })
}

/** Returns the rules of a schema that was made by `field`. */
export const rulesOf = (schema: TSchema) => (schema as TSchema & { [RULES]: Rules })[RULES]

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
  field([requiredAndNotEmpty, isId], {
    messages,
    decode: toId,
    maximum: MAX_ID,
    description,
    // No row has this id, so an example that is sent as it is changes nothing.
    examples: [MAX_ID],
  })

/** Returns the schema of a field of a body that may be missing or null. Both mean the same. */
export const Omissible = <T extends TSchema>(schema: T) =>
  Type.Optional({ ...schema, type: [schema.type, 'null'] })

/** Returns the schema of a boolean. A text like 'true' and a number like 1 are not accepted. */
export const Bool = (description: string) => field<boolean>([required, isBoolean], { description })

interface TextOptions extends FieldOptions<string> {
  /** The largest number of characters (code points), 255 by default. */
  max?: number
  /** What counts as missing. By default, so do an empty text and a text of only white space. */
  presence?: Constraint
  /** The constraints that follow those of every text. */
  further?: Constraint[]
}

/** Returns the schema of a text that is stored. */
export function Text(options: TextOptions = {}) {
  const { max = 255, presence = requiredAndNotBlank, further = [], ...rest } = options
  return field<string>([presence, isText, isStorable, hasAtMost(max), ...further], rest)
}

/**
 * The query parameter `page`: a whole number of at least 1 (contract, section 8). No list has
 * MAX_ID pages, so handlers get MAX_ID for every greater number.
 */
export const PageNumber = Type.Optional(
  field([requiredAndNotEmpty, isPage], {
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
    field([requiredAndNotEmpty, isOneOf(['true', 'false'])], {
      decode: (value) => value === 'true',
      description,
    }),
  )
