import fc from 'fast-check'
import type { Schema } from './document.js'

/** Values are generated as JSON texts, which may have `1e400`, repeated keys or garbage. */
type Json = fc.Arbitrary<string>

/**
 * Ids of rows that exist before the first request, ids of rows that earlier requests may have added
 * (see world.ts), and ids that no row has.
 */
const ids = fc.oneof(
  { arbitrary: fc.integer({ min: 1, max: 8 }), weight: 9 },
  { arbitrary: fc.integer({ min: 100, max: 103 }), weight: 2 },
  { arbitrary: fc.constantFrom(99, 2_147_483_647), weight: 1 },
)

const MOMENTS = ['2026-01-01', '2026-11-24T10:00', '2100-01-01T00:00:00.5+01:00']

const words = fc.oneof(
  fc.constantFrom('x', 'Ñandú', '%', '_', '\\', "o'x", '"', '$1', '\u202egnp', '😀', '__proto__'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
)

/**
 * Returns a generator of valid values, often the schema's examples and the ids of existing rows.
 */
export function valid(schema: Schema): Json {
  if (schema.enum) return fc.constantFrom(...schema.enum).map(json)
  if (typeOf(schema) === 'object') return object(schema)
  if (typeOf(schema) === 'array') return list(schema, valid)
  if (typeOf(schema) === 'boolean') return fc.constantFrom('true', 'false')
  if (typeOf(schema) === 'integer') return ids.map(String)
  if (typeOf(schema) !== 'string') return fc.jsonValue({ maxDepth: 2 }).map(json)
  if (schema.format === 'password' && !schema.examples) return fc.constant('"llavero-admin"')
  if (schema.format === 'date-time') return fc.constantFrom(...MOMENTS).map(json)
  const own = schema.format === 'email' ? fc.nat(9).map((n) => `ana${n}@ejemplo.com`) : words
  if (!schema.examples) return own.map(json)
  return fc.oneof({ arbitrary: fc.constantFrom(...schema.examples), weight: 6 }, own).map(json)
}

/**
 * Returns a generator of values that mostly have one error, at any depth. Few have several errors,
 * because one error could hide the others.
 */
export function faulty(schema: Schema): Json {
  if (typeOf(schema) === 'array') return fc.oneof(list(schema, faulty), hostile)
  if (typeOf(schema) === 'string') return fc.oneof({ arbitrary: texts, weight: 3 }, hostile)
  const { properties = {} } = schema
  const keys = Object.keys(properties)
  if (keys.length === 0) return hostile
  const wrong = fc.oneof(...keys.map((key) => object(schema, { [key]: faulty })))
  const strange = member(fc.constantFrom(...keys, ...KEYS), hostile)
  const more = fc
    .tuple(object(schema), strange)
    .map(([text, more]) => `${text.slice(0, -1)},${more}}`)
  const less = object({ properties, required: [] })
  return fc.oneof({ arbitrary: wrong, weight: 8 }, more, less, hostile)
}

/** Returns the type of a field that may be null as well. */
const typeOf = ({ type }: Schema) => [type].flat()[0]

type Values = (schema: Schema) => Json

const list = ({ items = {} }: Schema, values: Values) =>
  fc.array(values(items), { maxLength: 4 }).map((items) => `[${items.join()}]`)

/** Returns a generator of objects; the keys in `others` get values from these generators. */
function object({ properties = {}, required = [] }: Schema, others: Record<string, Values> = {}) {
  const members = Object.entries(properties).map(([key, schema]) => {
    const entry = member(fc.constant(key), (others[key] ?? valid)(schema))
    return required.includes(key) || others[key] ? entry : fc.option(entry, { freq: 4 })
  })
  return fc
    .tuple(...members)
    .map((entries) => `{${entries.filter((entry) => entry !== null).join()}}`)
}

const member = (key: fc.Arbitrary<string>, value: Json) =>
  fc.tuple(key, value).map(([key, value]) => `${json(key)}:${value}`)

const json = (value: unknown) => JSON.stringify(value)

const KEYS = ['__proto__', 'constructor', 'id', 'versionSesion', 'bitAdministrador', '', '\0']

/** Valid and invalid JSON texts, separated by two or more spaces or a line break. */
const CONSTANTS = String.raw`
  null  true  0  -0  -1  1.5  1e0  1E2  1e21  1e400  -1e400  01  0x1  NaN  -Infinity  undefined
  2147483647  2147483648  -2147483649  9007199254740993  'x'  "x  "\x"  []  {}  [1]  [null]  [[1]]
  {"id":1}  {"a":1,"a":2}  {"__proto__":{}}  {"constructor":{"prototype":1}}
  ""  " "  "\t\n"  "0"  " 1 "  "-1"  "+1"  "1e0"  "0x1"  "1_0"  "１"  "NaN"  "Infinity"  "1e400"
  "2147483648"  "9007199254740993"  "null"  "true"  "on"  "\u0000"  "a\u0000b"  "\u001b[31m"  "\u007f"
  "\u0085"  "\u202egnp"  "\ufeff"  "\u200b"  "\u2028"  "e\u0301"  "\ud800"  "\udc00\ud800"  "İı"  "ﬃ"
  "%_\\%"  "\\"  "' or 1=1 --"  "$1"  "{1,2}"  "../.."  "usuario"  "ＵＳＵＡＲＩＯ"  "toString"  "rechazar"
  "a@b"  "a@b.co"  "\"a b\"@c.de"  "a@b.co\n"  "data:image"  "data:text/html,x"  "http://127.0.0.1:1/x"
  "data:image/png;base64,iVBORw0KGgo="  "data:image/png;base64,iVBORw0"  "data:image/png;base64,===="
  "data:image/svg+xml;base64,PHN2Zy8+"  "data:image/svg+xml,<svg onload=x>"
`
const LONG = [
  ...['9'.repeat(400), 'x'.repeat(255), 'x'.repeat(256), 'x'.repeat(9000), '😀'.repeat(256)],
  ...['ñ'.repeat(36), 'ñ'.repeat(37), `${'a'.repeat(250)}@b.co`],
]
const DEEP = [
  `${'['.repeat(5000)}${']'.repeat(5000)}`,
  `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`,
]

const constants = CONSTANTS.trim().split(/\s{2,}/)

/** A generator of strings that are hard to process. */
const texts: Json = fc.oneof(
  { arbitrary: fc.constantFrom(...constants.filter((text) => /^".*"$/.test(text))), weight: 4 },
  fc.constantFrom(...LONG).map(json),
  fc.string({ unit: fc.constantFrom(...'\0\ud800\\%😀\u202e\n"\'x ', 'e\u0301') }).map(json),
  fc.string({ unit: 'binary' }).map(json),
)

/** A generator of hostile values. */
export const hostile: Json = fc.oneof(
  { arbitrary: texts, weight: 6 },
  { arbitrary: fc.constantFrom(...constants, ...DEEP), weight: 4 },
  fc.double().map(String),
  fc.jsonValue({ maxDepth: 3 }).map(json),
)

/** Returns the string that a JSON text stands for, or the text itself when it is not a string. */
export function textOf(json: string): string {
  try {
    const value = JSON.parse(json)
    return typeof value === 'string' ? value : json
  } catch {
    return json
  }
}
