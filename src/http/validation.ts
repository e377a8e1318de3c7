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
import { fieldFailure, fieldFailures } from './fields.js'

/** Handlers see what the schema decodes to: ids as numbers, flags as booleans. */
export interface TypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? StaticDecode<this['schema']> : unknown
  serializer: this['schema'] extends TSchema ? StaticDecode<this['schema']> : unknown
}

/** A feature: a plugin whose handlers are typed by their schemas. */
export type RoutePlugin<Options extends FastifyPluginOptions = Record<never, never>> =
  FastifyPluginAsync<Options, RawServerDefault, TypeProvider>

/** Has requests checked and decoded by their schemas, the path before the body is read. */
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
 * Returns the function that checks and decodes one part of a request. Its error is the Failure of the
 * first invalid field in the order of the schema; fields for which the contract (section 7) has a
 * text come first. A field that is `null` counts as omitted, in a query the empty text as well. A body that is not an
 * object counts as an empty one.
 */
function validator(schema: TObject, part?: string) {
  const check = TypeCompiler.Compile(schema)
  const names = Object.keys(schema.properties)
  return (input: unknown): { value?: unknown; error?: Failure } => {
    const sent = isRecord(input) ? input : {}
    const omitted: unknown[] = [undefined, null, part === 'querystring' ? '' : null]
    const given = names.filter((name) => !omitted.includes(sent[name]))
    const value = Object.fromEntries(given.map((name) => [name, sent[name]]))
    if (!check.Check(value)) return { error: firstFailure(schema, value) }
    return { value: Value.Parse(['Clean', 'Decode'], schema, value) }
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function firstFailure(schema: TObject, value: Record<string, unknown>): Failure | undefined {
  const failures = failuresOf(schema, value)
  return failures.find(({ code }) => code === 'invalid') ?? failures[0]
}

function failuresOf({ properties, required = [] }: TObject, value: Record<string, unknown>) {
  return Object.entries(properties)
    .filter(([name]) => required.includes(name) || value[name] !== undefined)
    .map(([name, schema]) => (schema.items ? listFailure : fieldFailure)(name, schema, value[name]))
    .filter((failure) => failure !== undefined)
}

const notAList = (name: string) => new Failure('malformed', `El campo ${name} debe ser una lista`)
const notAListOfObjects = (name: string) =>
  new Failure('malformed', `El campo ${name} debe ser una lista de objetos`)

/** The Failure of a list: of its first invalid entry, or `conflict` beyond its `maxItems`. */
function listFailure(name: string, { items, maxItems }: TSchema, value: unknown) {
  if (!Array.isArray(value)) return notAList(name)
  const entry = value.find((entry) => !Value.Check(items, entry))
  if (entry === undefined) return value.length > maxItems ? new Failure('conflict') : undefined
  return isRecord(entry) ? firstFailure(items, entry) : notAListOfObjects(name)
}

/** Every Failure that a part of a request can have for its fields; the document lists them. */
export function possibleFailures({ properties, required = [] }: TObject): Failure[] {
  return Object.entries(properties).flatMap(([name, schema]) =>
    schema.items
      ? [notAList(name), notAListOfObjects(name), ...possibleFailures(schema.items)]
      : fieldFailures(name, schema, required.includes(name)),
  )
}
