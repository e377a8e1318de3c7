/**
 * A constraint on the value of a field. The constraints of a field are checked in their order, and
 * the client gets the message of the first one that the value violates.
 */
export interface Constraint {
  /** The key under which a field can replace the constraint's message (see `Messages` in fields.ts). */
  readonly name: string
  /** Returns whether `value` satisfies the constraint, given that it satisfies all earlier ones. */
  isSatisfied(value: unknown): boolean
  /** Returns the message for the client when the value of `field` violates the constraint. */
  message(field: string): string
}

/** Returns the first constraint that `value` violates, or undefined if it satisfies all of them. */
export function violatedConstraint(constraints: readonly Constraint[], value: unknown) {
  return constraints.find((constraint) => !constraint.isSatisfied(value))
}

export const required: Constraint = {
  name: 'missing',
  isSatisfied: (value) => value !== undefined && value !== null,
  message: (field) => `El campo ${field} es obligatorio`,
}

/** Like `required`, but an empty text counts as missing, too. */
export const requiredAndNotEmpty: Constraint = {
  ...required,
  isSatisfied: (value) => required.isSatisfied(value) && value !== '',
}

/** Like `required`, but an empty text and a text of only white space count as missing, too. */
export const requiredAndNotBlank: Constraint = {
  ...required,
  isSatisfied: (value) => {
    const isBlank = typeof value === 'string' && value.trim() === ''
    return required.isSatisfied(value) && !isBlank
  },
}

export const isBoolean: Constraint = {
  name: 'boolean',
  isSatisfied: (value) => typeof value === 'boolean',
  message: (field) => `El campo ${field} debe ser booleano`,
}

export const isText: Constraint = {
  name: 'text',
  isSatisfied: (value) => typeof value === 'string',
  message: (field) => `El campo ${field} debe ser texto`,
}

/** The value is a whole number other than 0, or a text that JavaScript converts to one. */
export const isId: Constraint = {
  name: 'number',
  isSatisfied: (value) => Boolean(wholeNumber(value)),
  message: (field) => `El campo ${field} debe ser un número entero distinto de 0`,
}

/** The value is a whole number of at least 1, or a text that JavaScript converts to one. */
export const isPage: Constraint = {
  name: 'page',
  isSatisfied: (value) => (wholeNumber(value) ?? 0) >= 1,
  message: (field) => `El campo ${field} debe ser un entero mayor o igual a 1`,
}

export const isTrueOrFalse: Constraint = {
  name: 'choice',
  isSatisfied: (value) => value === 'true' || value === 'false',
  message: (field) => `El campo ${field} debe ser true o false`,
}

const forbiddenCharacters = (field: string) => `El campo ${field} contiene caracteres no permitidos`

/** PostgreSQL can store the text: it has neither a NUL character nor an unpaired surrogate. */
export const isStorable: Constraint = {
  name: 'characters',
  isSatisfied: (value) => {
    const text = String(value)
    return !text.includes('\0') && text.isWellFormed()
  },
  message: forbiddenCharacters,
}

/** White space at either end, or a control or invisible character anywhere. */
const INVISIBLE = /^\s|\s$|[\p{Cc}\p{Default_Ignorable_Code_Point}]/u

/** The text has no control or invisible characters, and no white space at either end. */
export const isVisible: Constraint = {
  name: 'characters',
  isSatisfied: (value) => !INVISIBLE.test(String(value)),
  message: forbiddenCharacters,
}

/** The text has at most `max` characters (code points). */
export const hasAtMost = (max: number): Constraint => ({
  name: 'length',
  isSatisfied: (value) => !isLongerThan(max, String(value)),
  message: (field) => `El campo ${field} no puede superar los ${max} caracteres`,
})

/** The text has at most `max` bytes in UTF-8. */
export const hasAtMostBytes = (max: number): Constraint => ({
  name: 'bytes',
  isSatisfied: (value) => Buffer.byteLength(String(value)) <= max,
  message: (field) => `El campo ${field} no puede superar los ${max} bytes`,
})

// The parts of an email address, as regular expressions. An atom is a word of the local part.
const ATOM = String.raw`[^\s@"(),:;<>[\]\\.\p{Cc}]+`
const LABEL = String.raw`[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?`
const EMAIL = new RegExp(`^${ATOM}(?:\\.${ATOM})*@(?:${LABEL}\\.)+${LABEL}$`, 'u')

/** The text is an email address: a local part, `@`, and a domain of at least two labels. */
export const isEmail: Constraint = {
  name: 'email',
  isSatisfied: (value) => EMAIL.test(String(value)),
  message: (field) => `El campo ${field} debe ser un correo electrónico`,
}

/** Returns the constraints of a text that is stored and has at most `max` characters. */
export const textConstraints = (max: number, presence = requiredAndNotBlank) => [
  presence,
  isText,
  isStorable,
  hasAtMost(max),
]

/** Returns whether `text` has more than `max` code points. */
function isLongerThan(max: number, text: string) {
  // `length` counts UTF-16 units, and a code point has one or two of them. So for most texts the code
  // points need not be counted.
  if (text.length <= max) return false
  if (text.length > 2 * max) return true
  return [...text].length > max
}

/**
 * Returns `value` itself if it is a whole number. If `value` is a text that JavaScript's `Number`
 * converts to a whole number, returns that number. A blank text becomes 0. A number beyond the
 * range of a double becomes Infinity, which counts as a whole number. Returns undefined for every
 * other value, even for the word `Infinity`.
 */
function wholeNumber(value: unknown) {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const isInfinityWord = typeof value === 'string' && /infinity/i.test(value)
  if (isInfinityWord) return undefined

  const number = Number(value)
  const isOutOfRange = Math.abs(number) === Infinity
  return Number.isInteger(number) || isOutOfRange ? number : undefined
}
