import {
  type ArrayOptions,
  Kind,
  type TObject,
  type TSchema,
  type TUnsafe,
  Type,
  TypeRegistry,
} from '@sinclair/typebox'
import {
  type Constraint,
  hasAtMost,
  isBoolean,
  isId,
  isPage,
  isStorable,
  isText,
  isTrueOrFalse,
  isVisible,
  required,
  requiredAndNotBlank,
  requiredAndNotEmpty,
  textConstraints,
  violatedConstraint,
} from './constraints.js'
import { Failure } from './failures.js'

/** The contract's texts for the constraints of a field, by the name of the constraint. */
export type Messages = Partial<Record<string, string>>

/**
 * The key of a schema's constraints. It is a symbol, so that they do not appear in the OpenAPI document.
 */
const CONSTRAINTS = Symbol('constraints')

interface FieldConstraints {
  constraints: readonly Constraint[]
  messages: Messages
}

type FieldSchema = TSchema & {
  [CONSTRAINTS]?: FieldConstraints
}

TypeRegistry.Set<FieldSchema>('Field', (schema, value) => {
  const { constraints } = constraintsOf(schema)
  return violatedConstraint(constraints, value) === undefined
})

function constraintsOf(schema: FieldSchema): FieldConstraints {
  return schema[CONSTRAINTS] ?? { constraints: [], messages: {} }
}

/**
 * Returns the schema of a field. `wire` is its JSON Schema for the OpenAPI document only. A request is
 * checked against the constraints, in their order. `messages` replaces the constraints' own texts.
 */
export function field<T>(
  wire: object,
  constraints: readonly Constraint[],
  messages: Messages = {},
) {
  return Type.Unsafe<T>({
    ...wire,
    [Kind]: 'Field',
    [CONSTRAINTS]: { constraints, messages },
  })
}

/** Returns the field with a conversion: handlers get what `decode` returns for a valid value. */
export function decoded<Wire, T>(schema: TUnsafe<Wire>, decode: (value: Wire) => T) {
  return Type.Transform(schema)
    .Decode(decode)
    .Encode((value) => value as unknown as Wire)
}

/** Returns the Failure for the first constraint of the field `name` that `value` violates, if any. */
export function checkField(name: string, schema: TSchema, value: unknown): Failure | undefined {
  const { constraints, messages } = constraintsOf(schema)
  const violated = violatedConstraint(constraints, value)
  return violated && failureFor(name, violated, messages)
}

/**
 * Returns every Failure that the field `name` can have. A field that is not required has no Failure for
 * a missing value.
 */
export function fieldFailures(name: string, schema: TSchema, isRequired: boolean): Failure[] {
  const { constraints, messages } = constraintsOf(schema)
  const checked = isRequired
    ? constraints
    : constraints.filter((constraint) => constraint.name !== required.name)
  return checked.map((constraint) => failureFor(name, constraint, messages))
}

/** Returns the Failure `invalid` if the contract has a text for the constraint, else `malformed`. */
function failureFor(name: string, constraint: Constraint, messages: Messages) {
  const message = messages[constraint.name]
  if (message !== undefined) return new Failure('invalid', message)
  return new Failure('malformed', constraint.message(name))
}

/** The largest value of an integer column in PostgreSQL, and so the largest id. */
export const MAX_ID = 2_147_483_647
/** Handlers get this id for every whole number that cannot be an id. No row has it. */
const UNKNOWN_ID = -1

function toId(value: unknown) {
  const id = Number(value)
  return id >= 1 && id <= MAX_ID ? id : UNKNOWN_ID
}

/**
 * Returns the schema of an id: a whole number other than 0, or the text of one. Handlers get a number
 * that fits an integer column.
 */
export function Id(messages?: Messages, description = 'Id') {
  const wire = {
    type: 'integer',
    minimum: 1,
    maximum: MAX_ID,
    description,
    // No row has this id, so an example that is sent as it is changes nothing.
    examples: [MAX_ID],
  }
  const constraints = [requiredAndNotEmpty, isId]
  const schema = field<number>(wire, constraints, messages)
  return decoded(schema, toId)
}

/** Returns the schema of an id in the path. `message` is the text for all of its constraints. */
export const PathId = (message: string, description: string) =>
  Id({ missing: message, number: message }, description)

const TOO_LONG = Symbol('too long')

/** The schema of a list. Its property TOO_LONG returns the Failure for a list that is too long. */
type ListSchema = TSchema & { [TOO_LONG]?: () => Failure }

/**
 * Returns the schema of a list of objects. A list of more than `maxItems` objects fails with the
 * Failure that `tooLong` returns.
 */
export function List<T extends TObject>(items: T, maxItems: number, tooLong: () => Failure) {
  const options: ArrayOptions = { maxItems }
  return Type.Array(items, { ...options, [TOO_LONG]: tooLong })
}

/** Returns the Failure for a list with too many objects, and undefined for all other lists. */
export function checkLength(schema: TSchema, list: unknown[]): Failure | undefined {
  if (list.length <= schema.maxItems) return undefined
  const { [TOO_LONG]: tooLong } = schema as ListSchema
  return tooLong?.()
}

/** Returns the schema of a field of a body that may be missing or null. Both mean the same. */
export const Omissible = <T extends TSchema>(schema: T) =>
  Type.Optional({ ...schema, nullable: true })

/** Returns the schema of a boolean. A text like 'true' and a number like 1 are not accepted. */
export const Bool = (description?: string) =>
  field<boolean>({ type: 'boolean', description }, [required, isBoolean])

interface TextOptions {
  /** The largest number of characters (code points), 255 by default. */
  max?: number
  /** Whether an empty text and a text of only white space are accepted. */
  blank?: boolean
  /** Whether invisible characters and white space at either end are refused. */
  visible?: boolean
  description?: string
  examples?: string[]
  messages?: Messages
}

/** Returns the schema of a text that is stored. */
export function Text(options: TextOptions = {}) {
  const { max = 255, blank, visible, messages, ...documentation } = options
  const wire = {
    type: 'string',
    minLength: blank ? 0 : 1,
    maxLength: max,
    ...documentation,
  }
  const presence = blank ? required : requiredAndNotBlank
  const constraints = textConstraints(max, presence)
  if (visible) constraints.push(isVisible)
  return field<string>(wire, constraints, messages)
}

const PAGE_WIRE = { type: 'integer', minimum: 1, default: 1, description: 'Página' }

/** No list has so many pages, so handlers get this number for every greater one. */
const MAX_PAGE = MAX_ID

/** The query parameter `page`: a whole number of at least 1 (contract, section 8). */
export const PageNumber = Type.Optional(
  decoded(field<string>(PAGE_WIRE, [isPage]), (value) => Math.min(Number(value), MAX_PAGE)),
)

/** The longest text to search for, in characters. The texts that are searched are not longer. */
const MAX_SEARCH = 255

/**
 * The query parameter `search`: a text that the rows must contain. Upper and lower case of ASCII and
 * Spanish letters are not distinguished.
 */
export const Search = Type.Optional(
  field<string>(
    {
      type: 'string',
      maxLength: MAX_SEARCH,
      description: 'Texto que contiene',
    },
    [isText, isStorable, hasAtMost(MAX_SEARCH)],
  ),
)

/** Returns the schema of a query parameter that is `true` or `false`. Handlers get a boolean. */
export function QueryBoolean(description: string) {
  const wire = { type: 'string', enum: ['true', 'false'], description }
  const schema = field<string>(wire, [isTrueOrFalse])
  return Type.Optional(decoded(schema, (value) => value === 'true'))
}
