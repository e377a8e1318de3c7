import { OptionalKind, type TObject, type TSchema } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { Failure } from '../answers/failures.js'
import { rulesOf } from './fields.js'

/**
 * Checks and decodes requests by the schemas of their routes. The path parameters are checked
 * before the body is read. Fastify has them checked again after that, so decoding them twice must
 * give the same values, as it does for ids.
 */
export function validateRequests(app: FastifyInstance) {
  app.addHook('preParsing', async (request) => {
    const { params } = request.routeOptions.schema ?? {}
    if (params) request.params = readObject(params as TObject, request.params)
  })
  app.setValidatorCompiler<TObject>(({ schema }) => {
    return (input) => ({ value: readObject(schema, input) })
  })
}

type Values = Record<string, unknown>

/**
 * Returns the decoded fields of an object. A value that is not an object has none of them. Throws
 * the Failure of the first invalid field, in the order of the schema. Failures for which the
 * contract (section 7) has a text come before all others.
 */
function readObject({ properties }: TObject, value: unknown): Values {
  const sent: Values = Object(value)
  const values: Values = {}
  const failures: Failure[] = []

  for (const [name, schema] of Object.entries(properties)) {
    try {
      values[name] = readField(name, schema, sent[name])
    } catch (error) {
      failures.push(error as Failure)
    }
  }
  const failure = failures.find(({ code }) => code === 'invalid') ?? failures[0]
  if (failure) throw failure
  return values
}

/**
 * Returns the decoded value of a field, or undefined if the field is optional and missing. Throws
 * the Failure of the first constraint that the value violates, or of the first invalid entry of a
 * list.
 */
function readField(name: string, schema: TSchema, value: unknown) {
  const { constraints, messages = {}, decode } = rulesOf(schema)
  const violated = constraints.find((constraint) => !constraint.isSatisfied(value))
  if (violated) {
    if (violated.name === 'missing' && OptionalKind in schema) return undefined
    const message = typeof messages === 'string' ? messages : messages[violated.name]
    if (message !== undefined) throw new Failure('invalid', message)
    throw new Failure('malformed', violated.message.replace('%s', name))
  }
  if (schema.items) return (value as unknown[]).map((entry) => readObject(schema.items, entry))
  return decode ? decode(value) : value
}
