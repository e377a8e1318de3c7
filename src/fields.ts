import {
  Kind,
  type TSchema,
  type TTransform,
  type TUnsafe,
  Type,
  TypeRegistry,
} from '@sinclair/typebox'

/** What can be wrong with the value of one field. */
export type Fault =
  | 'missing'
  | 'number'
  | 'page'
  | 'boolean'
  | 'flag'
  | 'text'
  | 'choice'
  | 'characters'
  | 'length'
  | 'bytes'
  | 'email'
  | 'prefix'
  | 'image'

/** Texts of the contract for single faults of a field; the others get a text made from its name. */
export type Faults = Partial<Record<Fault, string>>

export interface FieldSchema extends TSchema {
  [FAULTS]?: Faults | undefined
  [FAULT]?: (value: unknown) => Fault | undefined
}
const FAULTS = Symbol('faults')
const FAULT = Symbol('fault')

TypeRegistry.Set<FieldSchema>('Field', (schema, value) => schema[FAULT]?.(value) === undefined)

/** What is wrong with `value` as this field, and the contract's own text for it where it has one. */
export function findFault(schema: FieldSchema, value: unknown) {
  const fault = schema[FAULT]?.(value)
  return fault && { fault, message: schema[FAULTS]?.[fault] }
}

export interface FieldOptions {
  /** The JSON Schema of the wire form, for OpenAPI. */
  wire: Record<string, unknown>
  fault: (value: unknown) => Fault | undefined
  faults?: Faults | undefined
}

/** A field whose faults are told apart by `fault` and whose value is taken as it came. */
export function field<T>({ wire, fault, faults }: FieldOptions) {
  return Type.Unsafe<T>({ ...wire, [Kind]: 'Field', [FAULT]: fault, [FAULTS]: faults })
}

/** The same, with `decode` making the value that handlers see from the one on the wire. */
export function decoded<Wire, T>(options: FieldOptions, decode: (value: Wire) => T) {
  return Type.Transform(field<Wire>(options))
    .Decode(decode)
    .Encode((value) => value as unknown as Wire)
}

const isMissing = (value: unknown) => value === undefined || value === null || value === ''

/** The whole number that `value` is or spells (blank text: 0), ±Infinity beyond a double. */
function wholeNumber(value: unknown) {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  if (typeof value === 'string' && /infinity/i.test(value)) return undefined
  const number = Number(value)
  return Number.isNaN(number) || (Number.isFinite(number) && !Number.isInteger(number))
    ? undefined
    : number
}

/** The largest key of an integer column. */
export const MAX_ID = 2_147_483_647
/** Stands for every id that is whole but that no row can have: generated keys start at 1. */
const UNKNOWN_ID = -1

/** An id: a whole number or a numeric string, but 0; decodes to a number that fits the column. */
export const Id = (faults?: Faults): TTransform<TUnsafe<number>, number> =>
  decoded<number, number>(
    {
      wire: { type: 'integer', minimum: 1, maximum: MAX_ID, examples: [1] },
      fault: (value) => (isMissing(value) ? 'missing' : wholeNumber(value) ? undefined : 'number'),
      faults,
    },
    toId,
  )

function toId(value: unknown) {
  const id = Number(value)
  return id >= 1 && id <= MAX_ID ? id : UNKNOWN_ID
}

/** An id in the path, of which every fault has the one text `mensaje`. */
export const IdDeRuta = (mensaje: string) => Id({ missing: mensaje, number: mensaje })

/** `?…=3`: an id to filter by; empty is no filter. */
export const IdDeConsulta = Type.Optional(
  decoded<string, number | undefined>(
    {
      wire: { type: 'integer', minimum: 1, maximum: MAX_ID },
      fault: (value) => (value === '' || wholeNumber(value) ? undefined : 'number'),
    },
    (value) => (value === '' ? undefined : toId(value)),
  ),
)

/** A flag of a permission record: `null`, `0` and `""` are false. */
export const Flag = Type.Optional(
  decoded<boolean, boolean>(
    {
      wire: { type: 'boolean', default: false },
      fault: (value) =>
        typeof value === 'boolean' || value === null || value === 0 || value === ''
          ? undefined
          : 'flag',
    },
    (value) => value === true,
  ),
)

/** A boolean that nothing else stands for. */
export const Booleano = (options: { default?: boolean } = {}) =>
  field<boolean>({
    wire: { type: 'boolean', ...options },
    fault: (value) =>
      value === undefined || value === null
        ? 'missing'
        : typeof value === 'boolean'
          ? undefined
          : 'boolean',
  })

interface TextoOptions {
  /** The largest number of characters (code points). */
  max?: number
  /** Whether the empty text and white space alone will do. */
  blank?: boolean
  example?: string
  faults?: Faults
}

/** Text to be stored: no NUL (PostgreSQL has none), bounded, and not blank unless it may be. */
export const Texto = ({ max = 255, blank = false, example, faults }: TextoOptions = {}) =>
  field<string>({
    wire: {
      type: 'string',
      ...(blank ? {} : { minLength: 1 }),
      maxLength: max,
      ...(example === undefined ? {} : { examples: [example] }),
    },
    fault: (value) => textFault(value, max, blank),
    faults,
  })

/** What is wrong with `value` as a text of at most `max` characters. */
export function textFault(value: unknown, max: number, blank = false): Fault | undefined {
  if (value === undefined || value === null) return 'missing'
  if (typeof value !== 'string') return 'text'
  if (!blank && value.trim() === '') return 'missing'
  if (value.includes('\0')) return 'characters'
  // A code point is one or two units, so only texts between the two bounds need counting.
  if (value.length > max && (value.length > 2 * max || [...value].length > max)) return 'length'
}

const ATOM = String.raw`[^\s@"(),:;<>[\]\\.\p{Cc}]+`
const LABEL = String.raw`[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?`
const EMAIL = new RegExp(`^${ATOM}(?:\\.${ATOM})*@(?:${LABEL}\\.)+${LABEL}$`, 'u')

/** An email address: a local part, `@`, and a domain of at least two labels. */
export const Correo = field<string>({
  wire: { type: 'string', format: 'email', maxLength: 255, examples: ['ana@ejemplo.com'] },
  fault: (value) =>
    textFault(value, 255) ?? (EMAIL.test(value as string) ? undefined : ('email' as const)),
})

/** The most that bcrypt reads of a password; it would cut the rest silently. */
export const MAX_PASSWORD_BYTES = 72

/** What is wrong with `value` as a password. */
export function passwordFault(value: unknown): Fault | undefined {
  if (isMissing(value)) return 'missing'
  if (typeof value !== 'string') return 'text'
  // bcrypt repeats the key with a NUL after it: with one inside, "a" would pass for "a\0a".
  if (value.includes('\0')) return 'characters'
  if (Buffer.byteLength(value) > MAX_PASSWORD_BYTES) return 'bytes'
}

/** A password to be stored as its hash. */
export const Password = () =>
  field<string>({
    wire: { type: 'string', format: 'password', minLength: 1, examples: ['una clave larga'] },
    fault: passwordFault,
  })

/** `?page=`: a whole number of at least 1; empty or absent is page 1 (contract, section 8). */
export const Page = Type.Optional(
  decoded<string, number>(
    {
      wire: { type: 'integer', minimum: 1, default: 1 },
      fault: (value) => (value === '' || (wholeNumber(value) ?? 0) >= 1 ? undefined : 'page'),
    },
    (value) => Math.min(Number(value) || 1, MAX_ID),
  ),
)

/** `?search=`: text to be found anywhere, whatever its case; empty is no filter. */
export const Search = Type.Optional(
  decoded<string, string | undefined>(
    {
      wire: { type: 'string' },
      fault: (value) =>
        typeof value !== 'string' ? 'text' : value.includes('\0') ? 'characters' : undefined,
    },
    (value) => value || undefined,
  ),
)

/** `?…=true|false`: empty is no filter. */
export const BooleanoDeConsulta = Type.Optional(
  decoded<string, boolean | undefined>(
    {
      wire: { type: 'string', enum: ['true', 'false', ''] },
      fault: (value) =>
        value === 'true' || value === 'false' || value === '' ? undefined : 'choice',
    },
    (value) => (value === '' ? undefined : value === 'true'),
  ),
)
