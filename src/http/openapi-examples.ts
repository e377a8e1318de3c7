import type { TSchema } from '@sinclair/typebox'
import type { FastifySchema } from 'fastify'

/** The request that the page of the documentation prefills for an operation. */
export interface RequestExample {
  /** The values of the path parameters, by name. */
  params?: Record<string, number>
  body?: object
}

/** The example requests, by the `operationId` of the operation. */
export type RequestExamples = Record<string, RequestExample | undefined>

/** The page replaces it by a random number, so that the names in an example are always new. */
export const PLACEHOLDER = '{n}'

/** The name of the example of a successful answer, and the description of that answer. */
export const DONE = 'Hecho'

/** Returns the schema of a route, with the example added to its path parameters and its body. */
export function withRequestExample(schema: FastifySchema, example: RequestExample = {}) {
  const { params, body } = example
  return {
    ...schema,
    ...(params && { params: withExampleValues(schema.params as TSchema, params) }),
    ...(body && { body: { ...(schema.body as TSchema), examples: [body] } }),
  }
}

/** Returns the schema of an object, with an example value added to each property. */
function withExampleValues(schema: TSchema, values: Record<string, number>) {
  const properties = Object.entries<TSchema>(schema.properties).map(([name, property]) => [
    name,
    { ...property, examples: [values[name]] },
  ])
  return { ...schema, properties: Object.fromEntries(properties) }
}

/**
 * Returns the examples of the answers with one status, by name. The example of each schema in `done` is
 * named DONE, and each body in `failures` is named after its message.
 */
export function answerExamples(done: TSchema[], failures: { message: string }[]) {
  const examples = [
    ...done.map((schema) => [DONE, { value: exampleOf(schema) }]),
    ...failures.map((body) => [body.message, { value: body }]),
  ]
  return Object.fromEntries(examples)
}

/** Returns an example value for the schema, built from the examples of its fields. */
function exampleOf(schema: TSchema): unknown {
  if (schema.examples) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.items) return [exampleOf(schema.items)]
  const fields = Object.entries<TSchema>(schema.properties ?? {})
  return Object.fromEntries(fields.map(([name, field]) => [name, exampleOf(field)]))
}
