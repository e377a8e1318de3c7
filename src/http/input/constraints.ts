import type { SchemaOptions } from '@sinclair/typebox'
import * as texts from '../../texts.js'

/** The keys under which a field can replace the messages of its constraints. */
export type MessageKey = 'missing' | 'characters' | 'length'

/**
 * A constraint on the value of a field. The constraints of a field are checked in their order, and
 * the client gets the message of the first one that the value violates.
 */
export interface Constraint {
  /**
   * The key of the message (see `Messages` in fields.ts). A constraint whose message no field
   * replaces needs none.
   */
  readonly key?: MessageKey
  /** The message for the client, with `%s` in the place of the field's name. */
  readonly message: string
  /** What the OpenAPI document says of the constraint, as keywords of JSON Schema. */
  readonly schema?: SchemaOptions
  /** Returns whether `value` satisfies the constraint, given that it satisfies all earlier ones. */
  isSatisfied(value: unknown): boolean
}

/** Returns the constraint `missing`, which is violated if the value is one of `values`. */
const presentUnless = (...values: unknown[]): Constraint => ({
  key: 'missing',
  message: 'El campo %s es obligatorio',
  isSatisfied: (value) => !values.includes(value),
})

/** A field that is null counts as missing. */
export const required = presentUnless(undefined, null)

/** Like `required`, but an empty text counts as missing, too. */
export const requiredAndNotEmpty = presentUnless(undefined, null, '')

/** Like `required`, but an empty text and a text of only white space count as missing, too. */
export const requiredAndNotBlank: Constraint = {
  ...required,
  schema: { minLength: 1, pattern: '\\S' },
  isSatisfied: (value) =>
    typeof value === 'string' ? value.trim() !== '' : required.isSatisfied(value),
}

export const mustBeBoolean: Constraint = {
  message: 'El campo %s debe ser booleano',
  schema: { type: 'boolean' },
  isSatisfied: (value) => typeof value === 'boolean',
}

export const mustBeText: Constraint = {
  message: 'El campo %s debe ser texto',
  schema: { type: 'string' },
  isSatisfied: (value) => typeof value === 'string',
}

export const mustBeList: Constraint = {
  message: 'El campo %s debe ser una lista',
  schema: { type: 'array' },
  isSatisfied: Array.isArray,
}

/** The value is a whole number other than 0, or a text that JavaScript converts to one. */
export const mustBeId: Constraint = {
  message: 'El campo %s debe ser un número entero distinto de 0',
  schema: { type: 'integer', minimum: 1 },
  isSatisfied: (value) => Boolean(wholeNumber(value)),
}

/** The value is a whole number of at least 1, or a text that JavaScript converts to one. */
export const mustBePage: Constraint = {
  ...mustBeId,
  message: 'El campo %s debe ser un entero mayor o igual a 1',
  isSatisfied: (value) => wholeNumber(value) >= 1,
}

/** The value is one of the texts `choices`. */
export const mustBeOneOf = (choices: readonly unknown[]): Constraint => ({
  message: `El campo %s debe ser ${choices.join(' o ')}`,
  schema: { type: 'string', enum: choices },
  isSatisfied: (value) => choices.includes(value),
})

export const mustBeStorable: Constraint = {
  key: 'characters',
  message: 'El campo %s contiene caracteres no permitidos',
  isSatisfied: texts.isStorable,
}

export const mustBeVisible: Constraint = {
  ...mustBeStorable,
  isSatisfied: texts.isVisible,
}

/** The text has at most `max` characters (code points). */
export const mustHaveAtMost = (max: number): Constraint => ({
  key: 'length',
  message: `El campo %s no puede superar los ${max} caracteres`,
  schema: { maxLength: max },
  isSatisfied: (text: string) => texts.isAtMost(max, text),
})

export const mustBeEmail: Constraint = {
  message: 'El campo %s debe ser un correo electrónico',
  schema: { format: 'email' },
  isSatisfied: texts.isEmail,
}

/**
 * Returns the whole number in `value`, a number or a text that JavaScript converts to one. Returns
 * NaN for anything else. A blank text means 0. A number too large for a double becomes Infinity,
 * but the word `Infinity` is NaN.
 */
function wholeNumber(value: unknown) {
  if (typeof value === 'string' && value.includes('Infinity')) return NaN
  const number = typeof value === 'string' ? Number(value) : value
  return typeof number === 'number' && Math.trunc(number) === number ? number : NaN
}
