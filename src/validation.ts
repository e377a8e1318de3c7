import type { StaticDecode, TObject, TSchema } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { Value } from '@sinclair/typebox/value'
import type {
  FastifyInstance,
  FastifyPluginAsync,
  FastifyPluginOptions,
  FastifySchemaCompiler,
  FastifyTypeProvider,
  RawServerDefault,
} from 'fastify'
import { compileDecode } from './decode.js'
import { Failure } from './failure.js'
import { type Fault, type FieldSchema, findFault, MAX_PASSWORD_BYTES } from './fields.js'

/** Handlers see what the schema decodes to: ids as numbers, flags as booleans. */
export interface TypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? StaticDecode<this['schema']> : unknown
  serializer: this['schema'] extends TSchema ? StaticDecode<this['schema']> : unknown
}

/** A feature: a plugin whose handlers are typed by their schemas. */
export type RoutePlugin<Options extends FastifyPluginOptions = Record<never, never>> =
  FastifyPluginAsync<Options, RawServerDefault, TypeProvider>

/**
 * Checks and decodes one part of a request. The Failure is that of the first field, in the order of
 * the schema, for whose fault the contract has a text; else that of the first one, which it names.
 * `null` for a field is as omitted, and what is no object has none of the fields
 * (contract, section 7).
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema }) =>
  validator(schema as TObject)

/** Has what is wrong with a path told before anything about the body (decisions, section 2). */
export function checkPathsFirst(app: FastifyInstance) {
  app.addHook('onRoute', (route) => {
    const { params, body } = route.schema ?? {}
    if (!params || !body) return
    const validate = validator(params as TObject)
    route.preParsing = async ({ params }) => {
      const { error } = validate(params)
      if (error) throw error
    }
  })
}

function validator(schema: TObject) {
  const check = TypeCompiler.Compile(schema)
  const decode = compileDecode(schema)
  const names = Object.keys(schema.properties)
  return (input: unknown): { value?: unknown; error?: Failure } => {
    const value = isRecord(input) ? { ...input } : {}
    for (const name of names) if (value[name] === null) delete value[name]
    return check.Check(value) ? { value: decode(value) } : { error: firstFailure(schema, value) }
  }
}

/** What the fields of a schema can be refused for: that they are missing, or of another type. */
export const faultyFields = (schema: TObject): Failure[] =>
  Object.entries(schema.properties)
    .flatMap(([name, field]) =>
      [undefined, {}].map((value) => fieldFailure(name, field, value, isRequired(schema, name))),
    )
    .filter((failure) => failure !== undefined)

const isRequired = (schema: TObject, name: string) => schema.required?.includes(name) ?? false

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function firstFailure(schema: TObject, value: Record<string, unknown>): Failure {
  const failures = Object.entries(schema.properties)
    .map(([name, field]) => fieldFailure(name, field, value[name], isRequired(schema, name)))
    .filter((failure) => failure !== undefined)
  return (
    failures.find(({ code }) => code === 'invalid') ??
    failures[0] ??
    new Failure('malformed', 'La petición no es válida')
  )
}

function fieldFailure(name: string, schema: TSchema, value: unknown, required: boolean) {
  if (!required && value === undefined) return undefined
  if (schema.type === 'array') return listFailure(name, schema.items, value)
  const found = findFault(schema as FieldSchema, value)
  if (!found) return undefined
  return found.message === undefined
    ? new Failure('malformed', FAULT_TEXTS[found.fault](name, schema))
    : new Failure('invalid', found.message)
}

function listFailure(name: string, items: TObject, value: unknown) {
  if (!Array.isArray(value)) return new Failure('malformed', `El campo ${name} debe ser una lista`)
  const entry = value.find((entry) => !Value.Check(items, entry))
  if (entry === undefined) return undefined
  return isRecord(entry)
    ? firstFailure(items, entry)
    : new Failure('malformed', `El campo ${name} debe ser una lista de objetos`)
}

const FAULT_TEXTS: Record<Fault, (name: string, schema: TSchema) => string> = {
  missing: (name) => `El campo ${name} es obligatorio`,
  number: (name) => `El campo ${name} debe ser un número entero distinto de 0`,
  page: (name) => `El campo ${name} debe ser un entero mayor o igual a 1`,
  boolean: (name) => `El campo ${name} debe ser booleano`,
  flag: (name) => `El campo ${name} debe ser booleano`,
  text: (name) => `El campo ${name} debe ser texto`,
  choice: (name) => `El campo ${name} debe ser true o false`,
  characters: (name) => `El campo ${name} contiene caracteres no permitidos`,
  length: (name, { maxLength }) => `El campo ${name} no puede superar los ${maxLength} caracteres`,
  bytes: () => `La contraseña no puede superar los ${MAX_PASSWORD_BYTES} bytes`,
  email: (name) => `El campo ${name} debe ser un correo electrónico`,
  prefix: (name) => `El campo ${name} debe empezar por data:image`,
  image: (name) => `El campo ${name} debe ser una imagen completa en base64`,
}
