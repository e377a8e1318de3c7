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

/**
 * A part of the names in the examples. The page replaces it by a random number in each request, so that
 * the name is always a new one.
 */
export const PLACEHOLDER = '{n}'

/** The name of the example of a successful answer, and the description of that answer. */
export const DONE = 'Hecho'

/** Returns the schema of a route, with the example added to its path parameters and its body. */
export function withRequestExample(schema: FastifySchema, example: RequestExample = {}) {
  const result = { ...schema }
  if (example.params) {
    result.params = withExampleValues(schema.params as TSchema, example.params)
  }
  if (example.body) {
    result.body = { ...(schema.body as TSchema), examples: [example.body] }
  }
  return result
}

/** Returns the schema of an object, with an example value added to each property. */
function withExampleValues(schema: TSchema, values: Record<string, number>) {
  const properties: Record<string, TSchema> = {}
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    properties[name] = { ...property, examples: [values[name]] }
  }
  return { ...schema, properties }
}

/**
 * Returns the examples of the answers with one status, by name. The example of the schema `done` is
 * named DONE, and each body in `failures` is named after its message.
 */
export function answerExamples(done: TSchema | undefined, failures: { message: string }[]) {
  const examples: Record<string, { value: unknown }> = {}
  if (done) examples[DONE] = { value: exampleOf(done) }
  for (const body of failures) {
    examples[body.message] = { value: body }
  }
  return examples
}

/** Returns an example value for the schema, built from the examples of its fields. */
function exampleOf(schema: TSchema): unknown {
  if (schema.examples) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.items) return [exampleOf(schema.items)]

  const example: Record<string, unknown> = {}
  for (const [name, field] of Object.entries<TSchema>(schema.properties ?? {})) {
    example[name] = exampleOf(field)
  }
  return example
}
