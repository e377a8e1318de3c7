import {
  type Constraint,
  mustBeStorable,
  mustBeText,
  requiredAndNotEmpty,
} from '../http/input/constraints.js'
import { field } from '../http/input/fields.js'
import { fitsBcrypt, MAX_PASSWORD_BYTES } from '../texts.js'

const mustFitBcrypt: Constraint = {
  message: `La contraseña no puede superar los ${MAX_PASSWORD_BYTES} bytes`,
  schema: { maxLength: MAX_PASSWORD_BYTES },
  isSatisfied: fitsBcrypt,
}

/**
 * The constraints of a password. mustBeStorable refuses a password that contains NUL. bcrypt
 * appends a NUL to each password and repeats the result, so "a" and "a\0a" would have the same
 * hash.
 */
export const PASSWORD_CONSTRAINTS = [requiredAndNotEmpty, mustBeText, mustBeStorable, mustFitBcrypt]

/** A password in a request. Only its hash is stored. */
export const Password = field<string>(PASSWORD_CONSTRAINTS, {
  format: 'password',
  minLength: 1,
  description: 'Contraseña, de 72 bytes como mucho; se guarda su hash',
  examples: ['una clave larga'],
})
