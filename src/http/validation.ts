import type { StaticDecode, TObject, TSchema } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { Value } from '@sinclair/typebox/value'
import type {
  FastifyInstance,
  FastifyPluginAsync,
  FastifyPluginOptions,
  FastifyTypeProvider,
  RawServerDefault,
} from 'fastify'
import { Failure } from './failures.js'
import { checkField, checkLength, fieldFailures } from './fields.js'

/**
 * Gives `params`, `query` and `body` in a handler the types of their decoded values. These types
 * follow from the schemas of the route.
 */
export interface TypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? StaticDecode<this['schema']> : unknown
  serializer: this['schema'] extends TSchema ? StaticDecode<this['schema']> : unknown
}

/** The type of a feature's plugin. The schemas of its routes determine the types of its handlers. */
export type RoutePlugin<Options extends FastifyPluginOptions = Record<never, never>> =
  FastifyPluginAsync<Options, RawServerDefault, TypeProvider>

/**
 * Checks and decodes requests by the schemas of their routes. If a route has a body, its path parameters
 * are checked before the body is read, and again with the other parts of the request.
 */
export function validateRequests(app: FastifyInstance) {
  app.setValidatorCompiler<TObject>(({ schema, httpPart }) => validator(schema, httpPart))
  app.addHook('onRoute', (route) => {
    const { params, body } = route.schema ?? {}
    if (!params || !body) return
    const validate = validator(params as TObject)
    route.preParsing = async (request) => {
      const { error } = validate(request.params)
      if (error) throw error
    }
  })
}

/**
 * Returns the function that checks and decodes one part of a request. That function returns the decoded
 * value, or the Failure of the first invalid field as `error` (see checkFields). A field that is null
 * counts as missing. So does an empty text in a query string. A body that is not an object counts as
 * an empty object.
 */
function validator(schema: TObject, part?: string) {
  const check = TypeCompiler.Compile(schema)
  const names = Object.keys(schema.properties)

  function isMissing(value: unknown) {
    if (part === 'querystring' && value === '') return true
    return value === undefined || value === null
  }

  return (input: unknown): { value?: unknown; error?: Failure } => {
    const sent = isRecord(input) ? input : {}
    const given = names.filter((name) => !isMissing(sent[name]))
    const values = Object.fromEntries(given.map((name) => [name, sent[name]]))
    if (!check.Check(values)) return { error: checkFields(schema, values) }
    return { value: Value.Parse(['Clean', 'Decode'], schema, values) }
  }
}

/** The values of the fields, by name. */
type Values = Record<string, unknown>

const isRecord = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Returns the Failure of the first invalid field, in the order of the schema. Failures for which the
 * contract (section 7) has a text come before all others.
 */
function checkFields(schema: TObject, values: Values): Failure | undefined {
  const { properties, required = [] } = schema
  const failures: Failure[] = []

  for (const [name, field] of Object.entries(properties)) {
    const value = values[name]
    if (value === undefined && !required.includes(name)) continue
    const isList = field.items !== undefined
    const failure = isList ? checkList(name, field, value) : checkField(name, field, value)
    if (failure) failures.push(failure)
  }
  return failures.find(({ code }) => code === 'invalid') ?? failures[0]
}

function notAList(name: string) {
  return new Failure('malformed', `El campo ${name} debe ser una lista`)
}

function notAListOfObjects(name: string) {
  return new Failure('malformed', `El campo ${name} debe ser una lista de objetos`)
}

/** Returns the Failure of the first invalid entry, or of too many entries if all are valid. */
function checkList(name: string, schema: TSchema, value: unknown): Failure | undefined {
  if (!Array.isArray(value)) return notAList(name)
  const { items } = schema
  const invalid = value.find((entry) => !Value.Check(items, entry))
  if (invalid === undefined) return checkLength(schema, value)
  return isRecord(invalid) ? checkFields(items, invalid) : notAListOfObjects(name)
}

/**
 * Returns the Failures that one part of a request can have, for the OpenAPI document. The Failure
 * for a list with too many objects is missing here, so the route must declare it in
 * `config.failures`.
 */
export function possibleFailures({ properties, required = [] }: TObject): Failure[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    if (!schema.items) return fieldFailures(name, schema, required.includes(name))
    const failuresOfItems = possibleFailures(schema.items)
    return [notAList(name), notAListOfObjects(name), ...failuresOfItems]
  })
}
