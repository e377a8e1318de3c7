import { OptionalKind, type TObject, type TSchema } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { Failure } from '../answers/failures.js'
import { type Constraint, isObject, required, violatedConstraint } from './constraints.js'
import { type Messages, rulesOf } from './fields.js'

/** The type of a feature's plugin. The schemas of its routes determine the types of its handlers. */
export type { FastifyPluginAsyncTypebox as RoutePlugin } from '@fastify/type-provider-typebox'

/**
 * Checks and decodes requests by the schemas of their routes. If a route has a body, its path parameters
 * are checked before the body is read, and again with the other parts of the request.
 */
export function validateRequests(app: FastifyInstance) {
  app.setValidatorCompiler<TObject>(({ schema }) => {
    return (input) => ({ value: readObject(schema, input) })
  })
  app.addHook('onRoute', (route) => {
    const { params, body } = route.schema ?? {}
    if (!params || !body) return
    route.preParsing = async (request) => {
      readObject(params as TObject, request.params)
    }
  })
}

type Values = Record<string, unknown>

/**
 * Returns the decoded fields of an object. A value that is not an object has no fields. Throws the
 * Failure of the first invalid field, in the order of the schema. Failures for which the contract
 * (section 7) has a text come before all others.
 */
function readObject({ properties }: TObject, value: unknown): Values {
  const sent = (isObject.isSatisfied(value) ? value : {}) as Values
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
 * Returns the decoded value of a field, or undefined if the field is optional and missing. Throws the
 * Failure of the first constraint that the value violates, or of the first invalid entry of a list.
 */
function readField(name: string, schema: TSchema, value: unknown) {
  const { constraints, messages, decode } = rulesOf(schema)
  const violated = violatedConstraint(constraints, value)
  if (violated && isWaived(schema, violated)) return undefined
  if (violated) throw failureFor(name, violated, messages)
  if (schema.items) return readList(name, schema.items, value as unknown[])
  return decode ? decode(value) : value
}

function readList(name: string, items: TObject, list: unknown[]) {
  return list.map((entry) => {
    if (!isObject.isSatisfied(entry)) throw failureFor(name, isObject)
    return readObject(items, entry)
  })
}

/** Returns whether the field need not satisfy the constraint, because it is optional. */
function isWaived(schema: TSchema, { name }: Constraint) {
  return OptionalKind in schema && name === required.name
}

/** Returns the Failure `invalid` if the contract has a text for the constraint, else `malformed`. */
function failureFor(name: string, constraint: Constraint, messages: Messages = {}) {
  const message = messages[constraint.name]
  if (message !== undefined) return new Failure('invalid', message)
  return new Failure('malformed', constraint.message.replace('%s', name))
}

/** Returns the Failures that one part of a request can have, for the OpenAPI document. */
export function possibleFailures({ properties }: TObject): Failure[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const { constraints, messages } = rulesOf(schema)
    const failures = constraints
      .filter((constraint) => !isWaived(schema, constraint))
      .map((constraint) => failureFor(name, constraint, messages))
    if (!schema.items) return failures
    return [...failures, failureFor(name, isObject), ...possibleFailures(schema.items)]
  })
}
