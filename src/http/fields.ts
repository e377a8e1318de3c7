import { Kind, type TSchema, type TUnsafe, Type, TypeRegistry } from '@sinclair/typebox'
import {
  brokenConstraint,
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
} from './constraints.js'
import { Failure } from './failures.js'

/** The contract's own texts for single constraints of a field, by the constraint's name. */
export type Messages = Partial<Record<string, string>>

const RULES = Symbol('rules')
type FieldSchema = TSchema & {
  [RULES]?: { constraints: readonly Constraint[]; messages: Messages }
}

TypeRegistry.Set<FieldSchema>(
  'Field',
  (schema, value) => brokenConstraint(schema[RULES]?.constraints ?? [], value) === undefined,
)

/** A field with this JSON Schema in OpenAPI, and with these constraints, in their order. */
export function field<T>(
  wire: object,
  constraints: readonly Constraint[],
  messages: Messages = {},
) {
  return Type.Unsafe<T>({ ...wire, [Kind]: 'Field', [RULES]: { constraints, messages } })
}

/** The same field, whose handlers see what `decode` makes of the value on the wire. */
export function decoded<Wire, T>(schema: TUnsafe<Wire>, decode: (value: Wire) => T) {
  return Type.Transform(schema)
    .Decode(decode)
    .Encode((value) => value as unknown as Wire)
}

/** The Failure of the field `name` when `value` breaks one of its constraints. */
export function fieldFailure(name: string, schema: TSchema, value: unknown): Failure | undefined {
  const { constraints = [], messages = {} } = (schema as FieldSchema)[RULES] ?? {}
  const broken = brokenConstraint(constraints, value)
  return broken && constraintFailure(name, broken, messages)
}

/** Every Failure that the field `name` can have. An optional field that is absent is not checked. */
export function fieldFailures(name: string, schema: TSchema, isRequired: boolean): Failure[] {
  const { constraints = [], messages = {} } = (schema as FieldSchema)[RULES] ?? {}
  return constraints
    .filter((constraint) => isRequired || constraint.name !== required.name)
    .map((constraint) => constraintFailure(name, constraint, messages))
}

/** `invalid` where the contract has a text for the broken constraint, `malformed` elsewhere. */
function constraintFailure(name: string, constraint: Constraint, messages: Messages) {
  const message = messages[constraint.name]
  return message === undefined
    ? new Failure('malformed', constraint.message(name))
    : new Failure('invalid', message)
}

/** The largest key of an integer column. */
export const MAX_ID = 2_147_483_647
/** Stands for every id that is whole but that no row can have: generated keys start at 1. */
const UNKNOWN_ID = -1

function toId(value: unknown) {
  const id = Number(value)
  return id >= 1 && id <= MAX_ID ? id : UNKNOWN_ID
}

/** An id: a whole number other than 0, or a text of one; decodes to a number that fits the column. */
export function Id(messages?: Messages, description = 'Id') {
  const wire = { type: 'integer', minimum: 1, maximum: MAX_ID, description }
  return decoded(field<number>(wire, [requiredAndNotEmpty, isId], messages), toId)
}

/** An id in the path, with one text for every broken constraint. */
export const PathId = (message: string, description: string) =>
  Id({ missing: message, number: message }, description)

/** A field of a body that may be left out, or be null, which says the same. */
export const Omissible = <T extends TSchema>(schema: T) =>
  Type.Optional({ ...schema, nullable: true })

/** `true` or `false`, and no substitute for them. */
export const Bool = (description?: string) =>
  field<boolean>({ type: 'boolean', description }, [required, isBoolean])

interface TextOptions {
  /** The largest number of characters (code points). */
  max?: number
  /** Whether the empty text and white space alone are accepted. */
  blank?: boolean
  /** Whether invisible characters, and white space at either end, are refused. */
  visible?: boolean
  description?: string
  examples?: string[]
  messages?: Messages
}

/** Text to be stored: what PostgreSQL can keep, bounded, and not blank unless it may be. */
export function Text({ max = 255, blank, visible, messages, ...options }: TextOptions = {}) {
  const wire = { type: 'string', minLength: blank ? 0 : 1, maxLength: max, ...options }
  const constraints = textConstraints(max, blank ? required : requiredAndNotBlank)
  return field<string>(wire, visible ? [...constraints, isVisible] : constraints, messages)
}

/** `?page=`: a whole number of at least 1; absent is page 1 (contract, section 8). */
export const PageNumber = Type.Optional(
  decoded(
    field<string>({ type: 'integer', minimum: 1, default: 1, description: 'Página' }, [isPage]),
    (value) => Math.min(Number(value), MAX_ID),
  ),
)

/** The longest text to search for, in characters: no stored text is longer. */
const MAX_SEARCH = 255

/** `?search=`: text to be found anywhere, whatever its case. */
export const Search = Type.Optional(
  field<string>({ type: 'string', maxLength: MAX_SEARCH, description: 'Texto que contiene' }, [
    isText,
    isStorable,
    hasAtMost(MAX_SEARCH),
  ]),
)

/** `?…=true|false`. */
export function QueryBoolean(description: string) {
  const wire = { type: 'string', enum: ['true', 'false'], description }
  return Type.Optional(decoded(field<string>(wire, [isTrueOrFalse]), (value) => value === 'true'))
}
