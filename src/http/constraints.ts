/**
 * A constraint on the value of a field. The constraints of a field are checked in their order, and
 * the answer has the message of the first broken one.
 */
export interface Constraint {
  /** The key under which a field can give another message for the constraint. */
  readonly name: string
  /** Whether `value`, which keeps all earlier constraints of the field, keeps this one. */
  isKept(value: unknown): boolean
  /** The message for a client whose value for `field` breaks the constraint. */
  message(field: string): string
}

/** Returns the first constraint that `value` breaks; undefined when it keeps all of them. */
export const brokenConstraint = (constraints: readonly Constraint[], value: unknown) =>
  constraints.find((constraint) => !constraint.isKept(value))

export const required: Constraint = {
  name: 'missing',
  isKept: (value) => value !== undefined && value !== null,
  message: (field) => `El campo ${field} es obligatorio`,
}

/** The same as `required`, except that an empty text counts as missing. */
export const requiredAndNotEmpty: Constraint = {
  ...required,
  isKept: (value) => required.isKept(value) && value !== '',
}

/** The same as `required`, except that a text of white space alone counts as missing. */
export const requiredAndNotBlank: Constraint = {
  ...required,
  isKept: (value) => {
    const isBlank = typeof value === 'string' && value.trim() === ''
    return required.isKept(value) && !isBlank
  },
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

/** The value is a whole number other than 0, or a text that JavaScript converts to one. */
export const isId: Constraint = {
  name: 'number',
  isKept: (value) => Boolean(wholeNumber(value)),
  message: (field) => `El campo ${field} debe ser un número entero distinto de 0`,
}

/** The value is a whole number of at least 1, or a text that JavaScript converts to one. */
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

/** PostgreSQL can store the text: it has no NUL character and no half of a surrogate pair. */
export const isStorable: Constraint = {
  name: 'characters',
  isKept: (value) => !String(value).includes('\0') && String(value).isWellFormed(),
  message: forbiddenCharacters,
}

const INVISIBLE = /^\s|\s$|[\p{Cc}\p{Default_Ignorable_Code_Point}]/u

/** Every character of the text is visible, and there is no white space at either end. */
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

/** The text is an email address: a local part, `@`, and a domain of at least two labels. */
export const isEmail: Constraint = {
  name: 'email',
  isKept: (value) => EMAIL.test(String(value)),
  message: (field) => `El campo ${field} debe ser un correo electrónico`,
}

/** Returns the constraints of a text to be stored, of at most `max` characters. */
export const textConstraints = (max: number, presence = requiredAndNotBlank) => [
  presence,
  isText,
  isStorable,
  hasAtMost(max),
]

/** Returns the number of code points; for a text that is too long in any case, of UTF-16 units. */
function countCharacters(text: string, max: number) {
  // A code point has one or two UTF-16 units.
  const needsCounting = text.length > max && text.length <= 2 * max
  return needsCounting ? [...text].length : text.length
}

/**
 * Returns `value` as a whole number, converted like JavaScript does: a blank text is 0, and digits
 * beyond the range of a double are Infinity. Returns undefined for every other value.
 */
function wholeNumber(value: unknown) {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  if (typeof value === 'string' && /infinity/i.test(value)) return undefined
  const number = Number(value)
  return Number.isInteger(number) || Math.abs(number) === Infinity ? number : undefined
}
