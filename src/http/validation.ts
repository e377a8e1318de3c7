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
import { fieldFailure } from './fields.js'

/** Handlers see what the schema decodes to: ids as numbers, flags as booleans. */
export interface TypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? StaticDecode<this['schema']> : unknown
  serializer: this['schema'] extends TSchema ? StaticDecode<this['schema']> : unknown
}

/** A feature: a plugin whose handlers are typed by their schemas. */
export type RoutePlugin<Options extends FastifyPluginOptions = Record<never, never>> =
  FastifyPluginAsync<Options, RawServerDefault, TypeProvider>

/** Has requests checked and decoded by their schemas, the path before anything about the body. */
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
 * Checks and decodes one part of a request. The Failure is of the first field, in the order of the
 * schema, for whose fault the contract (section 7) has a text; else of the first one, which it names.
 * `null` is as omitted, and so is the empty text in a query; what is no object has no fields.
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

/** A list of more than its `maxItems` is a `conflict`. */
function listFailure(name: string, { items, maxItems }: TSchema, value: unknown) {
  if (!Array.isArray(value)) return new Failure('malformed', `El campo ${name} debe ser una lista`)
  const entry = value.find((entry) => !Value.Check(items, entry))
  if (entry === undefined) return value.length > maxItems ? new Failure('conflict') : undefined
  if (isRecord(entry)) return firstFailure(items, entry)
  return new Failure('malformed', `El campo ${name} debe ser una lista de objetos`)
}

/** Together they cause every fault that a field can have. */
const FAULTY = [undefined, {}, [0], 'x', '\0', 'x'.repeat(10_000), 'data:image']

/** All that the fields of a schema can be refused for. */
export function faultyFields(schema: TObject): Failure[] {
  const fields = Object.entries(schema.properties)
  return [
    ...FAULTY.flatMap((value) =>
      failuresOf(schema, Object.fromEntries(fields.map(([name]) => [name, value]))),
    ),
    ...fields.flatMap(([, { items }]) => (items ? faultyFields(items) : [])),
  ]
}
