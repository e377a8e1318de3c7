import { type Answer, statusCodeAnswer } from '../answers.js'
import type { EndpointName } from '../endpoints.js'

export type Json = Record<string, unknown>

/** What differs from an endpoint's valid request: the URL, fields of the body, or both. */
export type Change = string | Json | [string, Json]

/** A rule of the contract: each of these requests gets this answer and changes no row. */
export interface Rule {
  title: string
  changes: Change[]
  answer: Answer
}

export interface Contract {
  /** The id in the path of the valid request. */
  id?: number
  /** The body of the valid request. */
  body?: Json
  /** The body of the answer to the valid request, whose status is 200. */
  answer: Json
  /** Changes that do not change the answer, by the title of their test. */
  same?: Record<string, Change[]>
  rules: Rule[]
}

export type Contracts = Partial<Record<EndpointName, Contract>>

export const rule = (title: string, changes: Change[], answer: Answer): Rule => ({
  title,
  changes,
  answer,
})

/** Returns the rules with the first of their requests only. */
export const firstOfEach = (rules: Rule[]) =>
  rules.map((rule) => ({ ...rule, changes: rule.changes.slice(0, 1) }))

/** Returns one change for each of these values. The change gives the value to the field. */
export const withField = (field: string, values: unknown[]) =>
  values.map((value) => ({ [field]: value }))

/** Returns a URL for each of these endings. */
export const under = (path: string, endings: string[]) => endings.map((ending) => path + ending)

export const ok = (body: Json): Answer => ({ status: 200, body: { success: true, ...body } })
export const tooLongMessage = (field: string) =>
  `El campo ${field} no puede superar los 255 caracteres`

/** One character more than a text may have. */
export const LONG = 'ñ'.repeat(256)
/** Search texts of 255 characters. Each character of the second has two UTF-16 code units. */
export const LONGEST_SEARCHES = ['ñ'.repeat(255), '🗝'.repeat(255)]
/** Search texts above the limit of 255 characters. */
export const LONGER_SEARCHES = [LONG, '🗝'.repeat(256), 'x'.repeat(12_000)]
export const NUL = 'con \0 nulo'
export const MISSING = [undefined, null, '']
export const NOT_NUMBERS = [true, false, [], [2], {}, 'dos', 1.5, '1.5', 0, '0', '-0', ' ']
export const UNKNOWN_IDS = [999, -1, 2 ** 31, '99999999999999999999', '1e400', 1e300]
export const BAD_PATH_IDS = [
  '0',
  '00',
  '-0',
  'uno',
  '1.5',
  'NaN',
  'null',
  'true',
  '%20',
  '1%00',
  '1,2',
  '',
]
export const UNKNOWN_PATH_IDS = ['999', '-1', '2147483648', '99999999999999999999', '1e400']
export const BAD_FLAGS = ['true', 'false', 'x', 1, -1, [], {}]

const NOT_TEXTS = [5, true, ['x'], {}]

export const BAD_PERFIL_ID = statusCodeAnswer(400, 'ID de perfil inválido')

// The rules that several fields share.

export const required = (field: string, missing: unknown[] = MISSING) =>
  rule(
    `answers 400 when ${field} is missing`,
    withField(field, missing),
    statusCodeAnswer(400, `El campo ${field} es obligatorio`),
  )

export const mustBeText = (field: string) =>
  rule(
    `answers 400 when ${field} is not a string`,
    withField(field, NOT_TEXTS),
    statusCodeAnswer(400, `El campo ${field} debe ser texto`),
  )

export const mustBeId = (field: string) =>
  rule(
    `answers 400 when ${field} is not an integer other than 0`,
    withField(field, NOT_NUMBERS),
    statusCodeAnswer(400, `El campo ${field} debe ser un número entero distinto de 0`),
  )

export const mustBeBoolean = (field: string, values: unknown[]) =>
  rule(
    `answers 400 when ${field} is not a boolean`,
    withField(field, values),
    statusCodeAnswer(400, `El campo ${field} debe ser booleano`),
  )

export const mustHaveAllowedCharacters = (field: string, values: unknown[]) =>
  rule(
    `answers 400 when ${field} has a character that is not allowed`,
    withField(field, values),
    statusCodeAnswer(400, `El campo ${field} contiene caracteres no permitidos`),
  )

export const mustNotExceed255Characters = (field: string, values: unknown[] = [LONG]) =>
  rule(
    `answers 400 when ${field} has more than 255 characters`,
    withField(field, values),
    statusCodeAnswer(400, tooLongMessage(field)),
  )

export const mustNotExceed255CharactersInSearch = (path: string) =>
  rule(
    'answers 400 when search has more than 255 characters',
    under(`${path}?search=`, LONGER_SEARCHES),
    statusCodeAnswer(400, tooLongMessage('search')),
  )

export const mustBePage = (path: string) =>
  rule(
    'answers 400 when page is not an integer of at least 1',
    under(`${path}?page=`, ['0', '-1', '1.5', 'dos', '%20', '1%00', '1&page=1']),
    statusCodeAnswer(400, 'El campo page debe ser un entero mayor o igual a 1'),
  )
