/**
 * A rule for the value of a field. The rules of a field are checked in their order, and the client is
 * told of the first one that the value breaks.
 */
export interface Constraint {
  /** The key of the rule; a field can replace the message of a key with a text of its own. */
  readonly name: string
  /** Whether `value` keeps the rule. It has kept the earlier rules of the field already. */
  isKept(value: unknown): boolean
  /** What the client is told when `field` breaks the rule. */
  message(field: string): string
}

/** The first of the rules that `value` breaks; undefined when it keeps all of them. */
export const brokenConstraint = (constraints: readonly Constraint[], value: unknown) =>
  constraints.find((constraint) => !constraint.isKept(value))

export const required: Constraint = {
  name: 'missing',
  isKept: (value) => value !== undefined && value !== null,
  message: (field) => `El campo ${field} es obligatorio`,
}

/** As `required`, and an empty text is as good as none. */
export const requiredAndNotEmpty: Constraint = {
  ...required,
  isKept: (value) => required.isKept(value) && value !== '',
}

/** As `required`, and a text of nothing but white space is as good as none. */
export const requiredAndNotBlank: Constraint = {
  ...required,
  isKept: (value) => required.isKept(value) && !(typeof value === 'string' && value.trim() === ''),
}

export const isBoolean: Constraint = {
  name: 'boolean',
  isKept: (value) => typeof value === 'boolean',
  message: (field) => `El campo ${field} debe ser booleano`,
}

export const isText: Constraint = {
  name: 'text',
  isKept: (value) => typeof value === 'string',
  message: (field) => `El campo ${field} debe ser texto`,
}

/** A whole number other than 0, or a text that JavaScript reads as one. */
export const isId: Constraint = {
  name: 'number',
  isKept: (value) => Boolean(wholeNumber(value)),
  message: (field) => `El campo ${field} debe ser un número entero distinto de 0`,
}

/** A whole number of at least 1, or a text that JavaScript reads as one. */
export const isPage: Constraint = {
  name: 'page',
  isKept: (value) => (wholeNumber(value) ?? 0) >= 1,
  message: (field) => `El campo ${field} debe ser un entero mayor o igual a 1`,
}

export const isTrueOrFalse: Constraint = {
  name: 'choice',
  isKept: (value) => value === 'true' || value === 'false',
  message: (field) => `El campo ${field} debe ser true o false`,
}

const forbiddenCharacters = (field: string) => `El campo ${field} contiene caracteres no permitidos`

/** PostgreSQL can keep the text as it is: no NUL character, and no half of a surrogate pair. */
export const isStorable: Constraint = {
  name: 'characters',
  isKept: (value) => !String(value).includes('\0') && String(value).isWellFormed(),
  message: forbiddenCharacters,
}

const INVISIBLE = /^\s|\s$|[\p{Cc}\p{Default_Ignorable_Code_Point}]/u

/** Every character of the text can be seen, and no white space stands at either end. */
export const isVisible: Constraint = {
  name: 'characters',
  isKept: (value) => !INVISIBLE.test(String(value)),
  message: forbiddenCharacters,
}

/** The text has at most `max` characters (code points). */
export const hasAtMost = (max: number): Constraint => ({
  name: 'length',
  isKept: (value) => countCharacters(String(value), max) <= max,
  message: (field) => `El campo ${field} no puede superar los ${max} caracteres`,
})

/** The text has at most `max` bytes in UTF-8. */
export const hasAtMostBytes = (max: number): Constraint => ({
  name: 'bytes',
  isKept: (value) => Buffer.byteLength(String(value)) <= max,
  message: (field) => `El campo ${field} no puede superar los ${max} bytes`,
})

const ATOM = String.raw`[^\s@"(),:;<>[\]\\.\p{Cc}]+`
const LABEL = String.raw`[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?`
const EMAIL = new RegExp(`^${ATOM}(?:\\.${ATOM})*@(?:${LABEL}\\.)+${LABEL}$`, 'u')

/** An email address: a local part, `@`, and a domain of at least two labels. */
export const isEmail: Constraint = {
  name: 'email',
  isKept: (value) => EMAIL.test(String(value)),
  message: (field) => `El campo ${field} debe ser un correo electrónico`,
}

/** The constraints of a text to be stored, of at most `max` characters. */
export const textConstraints = (max: number, presence = requiredAndNotBlank) => [
  presence,
  isText,
  isStorable,
  hasAtMost(max),
]

/** The code points of a text; the UTF-16 units where these already say that there are too many. */
function countCharacters(text: string, max: number) {
  // A code point is one or two units.
  const needsCounting = text.length > max && text.length <= 2 * max
  return needsCounting ? [...text].length : text.length
}

/**
 * Returns the whole number that `value` is, or that JavaScript reads it as: 0 for a blank text, and
 * ±Infinity for digits beyond a double. Returns undefined for everything else.
 */
function wholeNumber(value: unknown) {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  if (typeof value === 'string' && /infinity/i.test(value)) return undefined
  const number = Number(value)
  return Number.isInteger(number) || Math.abs(number) === Infinity ? number : undefined
}
