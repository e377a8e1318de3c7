import type { TSchema } from '@sinclair/typebox'
import type { FastifySchema } from 'fastify'

/** The request that the page of the documentation prefills for an operation. */
export interface RequestExample {
  /** The values of the parameters in the path. */
  params?: Record<string, number>
  body?: object
}

/** The examples of requests, by the `operationId` of the operation. */
export type RequestExamples = Record<string, RequestExample | undefined>

/** The page sends a random number for it, so that an example that names something new is new. */
export const PLACEHOLDER = '{n}'

/** The key of the example of a request that was carried out, and the description of its answer. */
export const DONE = 'Hecho'

/** Returns the schema of a route with an example of its parameters and of its body. */
export function withRequestExample(schema: FastifySchema, example: RequestExample = {}) {
  const { params, body } = example
  return {
    ...schema,
    ...(params && { params: withValues(schema.params as TSchema, params) }),
    ...(body && { body: { ...(schema.body as TSchema), examples: [body] } }),
  }
}

function withValues(schema: TSchema, values: Record<string, number>) {
  const properties = Object.entries<TSchema>(schema.properties).map(([name, property]) => [
    name,
    { ...property, examples: [values[name]] },
  ])
  return { ...schema, properties: Object.fromEntries(properties) }
}

/**
 * Returns the examples of the answer with one status, by a name for each: of what the schemas in `done`
 * describe, and every body in `failures`, which is called by its text.
 */
export function answerExamples(done: TSchema[], failures: { message: string }[]) {
  const examples = [
    ...done.map((schema) => [DONE, { value: exampleOf(schema) }]),
    ...failures.map((body) => [body.message, { value: body }]),
  ]
  return Object.fromEntries(examples)
}

/** Returns an example of what the schema describes, made of the examples of its fields. */
function exampleOf(schema: TSchema): unknown {
  if (schema.examples) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.items) return [exampleOf(schema.items)]
  const fields = Object.entries<TSchema>(schema.properties ?? {})
  return Object.fromEntries(fields.map(([name, field]) => [name, exampleOf(field)]))
}
