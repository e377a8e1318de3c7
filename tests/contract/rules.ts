import { type Answer, statusCodeAnswer } from '../answers.js'
import type { EndpointName } from '../endpoints.js'
import type { TABLES } from '../tables.js'

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
  /** The ids of the rows that the valid request adds, changes or removes. The default is none. */
  writes?: Partial<Record<(typeof TABLES)[number], number[]>>
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
export const NUL = 'con \0 nulo'
export const MISSING = [undefined, null, '']
export const NOT_NUMBERS = [true, false, [], [2], {}, 'dos', 1.5, '1.5', 0, '0', '-0', ' ']
export const UNKNOWN_IDS = [999, -1, 2 ** 31, '99999999999999999999', '1e400', 1e300]
export const BAD_FLAGS = ['true', 'false', 'x', 1, -1, [], {}]

const NOT_TEXTS = [5, true, ['x'], {}]
const BAD_PATH_IDS = ['0', '-0', 'uno', '1.5', 'NaN', 'null', 'true', '%20', '1%00', '1,2', '']
const UNKNOWN_PATH_IDS = ['999', '-1', '2147483648', '9'.repeat(200), '1e400']

export const BAD_PERFIL_ID = statusCodeAnswer(400, 'ID de perfil inválido')

// The rules that several endpoints share. `path` is all that precedes the id or the query.

export const pathIdMustBeInteger = (path: string, answer: Answer) =>
  rule(
    `answers ${answer.status} when the id in the path is not an integer other than 0`,
    under(path, BAD_PATH_IDS),
    answer,
  )

export const unknownPathId = (path: string, answer: Answer) =>
  rule(
    `answers ${answer.status} when no row has the id in the path`,
    under(path, UNKNOWN_PATH_IDS),
    answer,
  )

export const mustBePage = (path: string) =>
  rule(
    'answers 400 when page is not an integer of at least 1',
    under(`${path}?page=`, ['0', '-1', '1.5', 'dos', '%20', '1%00', '1&page=1']),
    statusCodeAnswer(400, 'El campo page debe ser un entero mayor o igual a 1'),
  )

export const mustNotExceed255CharactersInSearch = (path: string) =>
  rule(
    'answers 400 when search has more than 255 characters',
    under(`${path}?search=`, [LONG, '🗝'.repeat(256), 'x'.repeat(12_000)]),
    statusCodeAnswer(400, tooLongMessage('search')),
  )

// The rules that several fields share.

/** Returns a rule for values of a field that are answered with 400 and this end of a message. */
const refused = (field: string, reason: string, values: unknown[], message: string) =>
  rule(
    `answers 400 when ${field} ${reason}`,
    withField(field, values),
    statusCodeAnswer(400, `El campo ${field} ${message}`),
  )

export const required = (field: string, missing: unknown[] = MISSING) =>
  refused(field, 'is missing', missing, 'es obligatorio')

export const mustBeText = (field: string) =>
  refused(field, 'is not a string', NOT_TEXTS, 'debe ser texto')

export const mustBeId = (field: string) =>
  refused(
    field,
    'is not an integer other than 0',
    NOT_NUMBERS,
    'debe ser un número entero distinto de 0',
  )

export const mustBeBoolean = (field: string, values: unknown[]) =>
  refused(field, 'is not a boolean', values, 'debe ser booleano')

export const mustHaveAllowedCharacters = (field: string, values: unknown[]) =>
  refused(field, 'has a character that is not allowed', values, 'contiene caracteres no permitidos')

export const mustNotExceed255Characters = (field: string, values: unknown[] = [LONG]) =>
  refused(field, 'has more than 255 characters', values, 'no puede superar los 255 caracteres')
