import { Kind, type TSchema, type TUnsafe, Type, TypeRegistry } from '@sinclair/typebox'
import { Failure } from './failures.js'

/** What can be wrong with a field, and how that is told where the contract has no text for it. */
const TEXTS = {
  missing: (name) => `El campo ${name} es obligatorio`,
  number: (name) => `El campo ${name} debe ser un número entero distinto de 0`,
  page: (name) => `El campo ${name} debe ser un entero mayor o igual a 1`,
  boolean: (name) => `El campo ${name} debe ser booleano`,
  text: (name) => `El campo ${name} debe ser texto`,
  choice: (name) => `El campo ${name} debe ser true o false`,
  characters: (name) => `El campo ${name} contiene caracteres no permitidos`,
  length: (name, { maxLength }) => `El campo ${name} no puede superar los ${maxLength} caracteres`,
  bytes: () => 'La contraseña no puede superar los 72 bytes',
  email: (name) => `El campo ${name} debe ser un correo electrónico`,
  prefix: (name) => `El campo ${name} debe empezar por data:image`,
  image: (name) => `El campo ${name} debe ser una imagen completa en base64`,
} satisfies Record<string, (name: string, schema: TSchema) => string>

export type Fault = keyof typeof TEXTS

type FindFault = (value: unknown) => Fault | undefined
/** The contract's own texts for single faults. */
export type Faults = Partial<Record<Fault, string>>

const FIELD = Symbol('field')
type FieldSchema = TSchema & { [FIELD]?: { find: FindFault; faults: Faults } }

TypeRegistry.Set<FieldSchema>('Field', (schema, value) => !schema[FIELD]?.find(value))

/** A field with this JSON Schema in OpenAPI, whose faults are told apart by `find`. */
export function field<T>(wire: object, find: FindFault, faults: Faults = {}) {
  return Type.Unsafe<T>({ ...wire, [Kind]: 'Field', [FIELD]: { find, faults } })
}

/** The same, with `decode` making the value that handlers see from the one on the wire. */
export function decoded<Wire, T>(schema: TUnsafe<Wire>, decode: (value: Wire) => T) {
  return Type.Transform(schema)
    .Decode(decode)
    .Encode((value) => value as unknown as Wire)
}

/** What is wrong with `value` as the field `name`: `invalid` where the contract has a text for it. */
export function fieldFailure(name: string, schema: TSchema, value: unknown): Failure | undefined {
  const { find, faults } = (schema as FieldSchema)[FIELD] ?? {}
  const fault = find?.(value)
  if (!fault) return undefined
  const message = faults?.[fault]
  return message === undefined
    ? new Failure('malformed', TEXTS[fault](name, schema))
    : new Failure('invalid', message)
}

/** The whole number that `value` is or spells (blank text: 0), ±Infinity beyond a double. */
function wholeNumber(value: unknown) {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  if (typeof value === 'string' && /infinity/i.test(value)) return undefined
  const number = Number(value)
  return Number.isInteger(number) || Math.abs(number) === Infinity ? number : undefined
}

/** The largest key of an integer column. */
export const MAX_ID = 2_147_483_647
/** Stands for every id that is whole but that no row can have: generated keys start at 1. */
const UNKNOWN_ID = -1

function toId(value: unknown) {
  const id = Number(value)
  return id >= 1 && id <= MAX_ID ? id : UNKNOWN_ID
}

/** An id: a whole number or a numeric string, but 0; decodes to a number that fits the column. */
export function Id(faults?: Faults, description = 'Id') {
  const wire = { type: 'integer', minimum: 1, maximum: MAX_ID, examples: [1], description }
  const find = (value: unknown) => {
    if (value === undefined || value === null || value === '') return 'missing'
    return wholeNumber(value) ? undefined : 'number'
  }
  return decoded(field<number>(wire, find, faults), toId)
}

/** An id in the path, of which every fault has the one text `message`. */
export const PathId = (message: string, description: string) =>
  Id({ missing: message, number: message }, description)

/** A field of a body that may be left out, or be null, which says the same. */
export const Omissible = <T extends TSchema>(schema: T) =>
  Type.Optional({ ...schema, nullable: true })

/** A boolean that nothing else stands for. */
export const Bool = (description?: string) =>
  field<boolean>({ type: 'boolean', description }, (value) => {
    if (typeof value === 'boolean') return undefined
    return value === undefined || value === null ? 'missing' : 'boolean'
  })

interface TextOptions {
  /** The largest number of characters (code points). */
  max?: number
  /** Whether the empty text and white space alone will do. */
  blank?: boolean
  /** Whether all of it must be seen: no invisible characters, no white space at either end. */
  visible?: boolean
  examples?: string[]
  faults?: Faults
}

const INVISIBLE = /^\s|\s$|[\p{Cc}\p{Default_Ignorable_Code_Point}]/u

/** Text to be stored: what PostgreSQL can keep, bounded, and not blank unless it may be. */
export function Text({ max = 255, blank, visible, examples, faults }: TextOptions = {}) {
  const wire = { type: 'string', minLength: blank ? 0 : 1, maxLength: max, examples }
  const isHidden = (value: unknown) => visible && INVISIBLE.test(String(value))
  return field<string>(
    wire,
    (value) => textFault(value, max, blank) ?? (isHidden(value) ? 'characters' : undefined),
    faults,
  )
}

/** Whether PostgreSQL can keep the text as it is: it has no NUL, and UTF-8 no lone surrogate. */
export const isStorable = (text: string) => !text.includes('\0') && text.isWellFormed()

/** What is wrong with `value` as a text of at most `max` characters. */
export function textFault(value: unknown, max: number, blank = false): Fault | undefined {
  if (value === undefined || value === null) return 'missing'
  if (typeof value !== 'string') return 'text'
  if (!blank && value.trim() === '') return 'missing'
  if (!isStorable(value)) return 'characters'
  // A code point is one or two units, so only texts between the two bounds need counting.
  if (value.length > max && (value.length > 2 * max || [...value].length > max)) return 'length'
}

/** `?page=`: a whole number of at least 1; absent is page 1 (contract, section 8). */
export const PageNumber = Type.Optional(
  decoded(
    field<string>({ type: 'integer', minimum: 1, default: 1, description: 'Página' }, (value) =>
      (wholeNumber(value) ?? 0) >= 1 ? undefined : 'page',
    ),
    (value) => Math.min(Number(value), MAX_ID),
  ),
)

/** `?search=`: text to be found anywhere, whatever its case. */
export const Search = Type.Optional(
  field<string>({ type: 'string', description: 'Texto que contiene' }, (value) => {
    if (typeof value !== 'string') return 'text'
    return isStorable(value) ? undefined : 'characters'
  }),
)

/** `?…=true|false`. */
export function QueryBoolean(description: string) {
  const wire = { type: 'string', enum: ['true', 'false'], description }
  const find: FindFault = (value) => (wire.enum.includes(value as string) ? undefined : 'choice')
  return Type.Optional(decoded(field<string>(wire, find), (value) => value === 'true'))
}
