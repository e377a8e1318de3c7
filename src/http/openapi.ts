import type { FastifyDynamicSwaggerOptions, SwaggerTransformObject } from '@fastify/swagger'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import Fastify, { type FastifyInstance, type FastifySchema, type RouteOptions } from 'fastify'
import { VERSION } from '../version.js'
import { Done, Named } from './envelopes.js'
import {
  Failure,
  type FailureAnswer,
  type FailureArguments,
  type FailureCode,
  renderFailure,
} from './failures.js'
import { shareResponses } from './openapi-components.js'
import {
  answerExamples,
  DONE,
  PLACEHOLDER,
  type RequestExamples,
  withRequestExample,
} from './openapi-examples.js'
import { possibleFailures } from './validation.js'

declare module 'fastify' {
  interface FastifySchema {
    /** The schemas of those statuses that only failures have, by status. documentFailures adds them. */
    failureSchemas?: Record<number, TSchema>
  }
}

/** The texts of the document about the whole service and about each feature. */
export interface About {
  description: string
  tags: { name: string; description: string }[]
  /** The example requests that the page prefills, by `operationId`. */
  examples: RequestExamples
}

/** The properties of a route from which the document is made. */
interface DocumentedRoute {
  method: RouteOptions['method']
  url: string
  schema: FastifySchema
}

/**
 * Collects the routes that are registered after this call, except the hidden ones. Returns a function
 * that makes the OpenAPI 3.1 document, as JSON text, from the schemas of these routes and from `about`.
 */
export function documentRoutes(app: FastifyInstance, about: About): () => Promise<string> {
  const routes: DocumentedRoute[] = []
  app.addHook('onRoute', ({ method, url, schema }) => {
    const isHidden = schema?.hide || method === 'HEAD'
    if (!isHidden) routes.push({ method, url, schema: schema ?? {} })
  })
  return () => makeDocument(routes, about)
}

/**
 * Makes the document with the plugin `@fastify/swagger`, on an additional application that answers no
 * requests. Most processes never get a request for the document. So the plugin is loaded at the first
 * such request, and not at the start of the service, which it would slow down.
 */
async function makeDocument(routes: DocumentedRoute[], about: About) {
  const { default: swagger } = await import('@fastify/swagger')
  const app = Fastify()
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => () => '')
  await app.register(swagger, options(about))
  for (const { method, url, schema } of routes) {
    const example = about.examples[schema.operationId ?? '']
    const response = { ...(schema.response ?? {}), ...schema.failureSchemas }
    app.route({
      method,
      url,
      schema: { ...withRequestExample(schema, example), response },
      handler: () => {},
    })
  }
  await app.ready()
  return JSON.stringify(app.swagger())
}

/**
 * Moves each schema with a title and each response to `components`, and puts references in their
 * places. All failures share two schemas, one for each shape. A failure has its own status and
 * texts as well: failureSchema adds them to the schema under the key `literals`. They are not
 * moved. They become the second part of an `allOf`, after the reference to the shared schema.
 */
const shareComponents: SwaggerTransformObject = (document) => {
  const { paths, ...rest } = 'openapiObject' in document ? document.openapiObject : {}
  const schemas: Record<string, object> = {}

  /** Returns the reference to a schema that has a title, and every other value as it is. */
  function share(_key: string, value: unknown) {
    const isSchemaWithTitle = value instanceof Object && 'title' in value
    if (!isSchemaWithTitle) return value
    const { title, literals, ...schema } = value as TitledSchema
    schemas[title] = schema
    const reference = { $ref: `#/components/schemas/${title}` }
    return literals ? { allOf: [reference, literals] } : reference
  }

  // JSON.parse calls `share` for each value of the document, and for the parts of a value first. So the
  // schemas in `components` contain references, too.
  const sharedPaths = JSON.parse(JSON.stringify(paths), share)
  const responses = shareResponses(sharedPaths)
  const components = { ...rest.components, schemas, responses }
  return { ...rest, paths: sharedPaths, components }
}

/** A schema that the document defines once, under its title. */
interface TitledSchema {
  title: string
  literals?: object
}

const options = ({ description, tags }: About): FastifyDynamicSwaggerOptions => ({
  // The tag of an operation is its feature, the second segment of the path.
  transform: ({ schema, url }) => ({
    schema: { ...schema, tags: [url.split('/')[2] ?? ''] },
    url,
  }),
  transformObject: shareComponents,
  // A literal stays a `const`. If it were an `enum` with one value, client generators would make an
  // enumeration type of it.
  convertConstToEnum: false,
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Llavero',
      version: VERSION,
      description:
        `${description} ` +
        `La página /docs envía un número al azar por cada ${PLACEHOLDER} de un ejemplo, ` +
        'de modo que el ejemplo de una creación vale más de una vez.',
      contact: { name: 'Llavero' },
    },
    servers: [{ url: '/' }],
    tags,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'El token del inicio de sesión; vale también en la cookie auth_token',
        },
      },
    },
    security: [{ bearer: [] }],
  },
})

const message = Type.String({ description: 'Qué ha fallado' })

/** The schemas of the bodies of all failures, by shape. */
const BODIES = {
  status: Named('FalloStatusCode', 'Por qué no se ha cumplido la petición', {
    statusCode: Type.Integer({ description: 'El código de estado de HTTP' }),
    message,
  }),
  success: Named('FalloSuccess', 'Por qué no se ha cumplido la petición', {
    success: Done(false),
    message,
  }),
}

/**
 * Describes the route's failures for the document, with every text that they can have and with an
 * example for each text. Used as an `onRoute` hook, after the hooks that modify `config`.
 *
 * Fastify serializes every answer by the schema that `response` has for its status. So a failure with
 * the status of a success is added to that schema. The schemas of all other failures are put into
 * `failureSchemas`, where Fastify does not look: it would compile a serializer for each of them, which
 * delays the start.
 */
export function documentFailures(route: RouteOptions) {
  const { method, schema, config } = route
  // A HEAD route has the same schema object as its GET route, which this function has changed already.
  if (schema?.hide || !schema?.response || method === 'HEAD') return

  const response = schema.response as Record<number, TSchema>
  const failures = failuresOfRoute(route).map((failure) => {
    return renderFailure(failure, config?.failures)
  })
  // With 200, the answer to a success gets its description and its example even if no failure has
  // this status.
  const statuses = new Set([200])
  for (const { status } of failures) statuses.add(status)

  schema.failureSchemas = {}
  for (const status of statuses) {
    const failuresOfStatus = failures.filter((failure) => failure.status === status)
    const success = response[status]
    if (success) response[status] = answerSchema(success, failuresOfStatus)
    else schema.failureSchemas[status] = answerSchema(undefined, failuresOfStatus)
  }
}

type RenderedFailure = ReturnType<typeof renderFailure>

/**
 * Returns the schema of all answers with one status: those that the schema `done` describes, and
 * the `failures`. All `failures` must have the same shape, because one schema is made for them.
 */
function answerSchema(done: TSchema | undefined, failures: RenderedFailure[]) {
  const bodies = failures.map(({ body }) => body)
  const texts = [...new Set(bodies.map(({ message }) => message))]
  const schemas = done ? [done] : []
  const [first] = failures
  if (first) schemas.push(failureSchema(first, texts))
  const descriptions = done ? [DONE, ...texts] : texts
  return {
    ...Type.Union(schemas),
    'x-response-description': descriptions.join(' · '),
    'x-examples': answerExamples(done, bodies),
  }
}

/** Returns the schema of a route's failures with one status. Their message is one of `texts`. */
function failureSchema({ status, shape }: RenderedFailure, texts: string[]) {
  const statusCode = { type: 'integer', const: status }
  const text = texts.length === 1 ? { const: texts[0] } : { enum: texts }
  const message = { type: 'string', ...text }
  const literals = {
    type: 'object',
    required: ['message'],
    properties: shape === 'status' ? { statusCode, message } : { message },
  }
  return { ...BODIES[shape], literals }
}

/** Returns the failures that a route can have, from its input and from its `config.failures`. */
function failuresOfRoute({ method, schema, config }: RouteOptions): Failure[] {
  const { params, querystring, body } = (schema ?? {}) as Record<string, TObject | undefined>
  const inputs = [params, querystring, body].filter((part) => part !== undefined)
  const declared = Object.entries(config?.failures ?? {}) as [FailureCode, FailureAnswer][]

  const usual = [new Failure('unexpected'), new Failure('busy')]
  // A path with parameters may be impossible to decode.
  if (params) usual.push(new Failure('unreadable'))
  // A client may send a body even if the route expects none. Such a body is read, and may be refused.
  if (method !== 'GET') {
    usual.push(
      new Failure('noJson'),
      new Failure('unreadable'),
      new Failure('tooLarge'),
      new Failure('unsupported'),
    )
  }

  return [
    ...inputs.flatMap(possibleFailures),
    ...declared.flatMap(([code, answer]) => declaredFailures(code, answer)),
    ...usual,
  ]
}

/** Returns one Failure for each text of a declared answer. */
function declaredFailures(code: FailureCode, answer: FailureAnswer) {
  const texts = 'texts' in answer ? answer.texts : [answer.message]
  return texts.map((text) => {
    const failure = [code, text] as FailureArguments
    return new Failure(...failure)
  })
}
