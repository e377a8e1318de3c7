import type { FastifyDynamicSwaggerOptions, SwaggerTransformObject } from '@fastify/swagger'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import Fastify, { type FastifyInstance, type RouteOptions } from 'fastify'
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

/** What the document says of the service as a whole, and of each feature. */
export interface About {
  description: string
  tags: { name: string; description: string }[]
  /** The requests that the page prefills, by operationId. */
  examples: RequestExamples
}

/** A route as the document needs it. */
type DocumentedRoute = Pick<RouteOptions, 'method' | 'url' | 'schema'>

/**
 * Collects the routes that are registered after this call, but not the hidden ones. Returns a function
 * that makes their document (OpenAPI 3.1, as JSON text) from their schemas and from `about`.
 */
export function documentRoutes(app: FastifyInstance, about: About): () => Promise<string> {
  const routes: DocumentedRoute[] = []
  app.addHook('onRoute', ({ method, url, schema }) => {
    const isHidden = schema?.hide || method === 'HEAD'
    if (!isHidden) routes.push({ method, url, ...(schema && { schema }) })
  })
  return () => makeDocument(routes, about)
}

/**
 * Makes the document with a plugin on an application of its own, which answers no request. Few
 * processes are asked for the document, and the plugin would add 25 ms to the start of each.
 */
async function makeDocument(routes: DocumentedRoute[], about: About) {
  const { default: swagger } = await import('@fastify/swagger')
  const app = Fastify()
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => () => '')
  await app.register(swagger, options(about))
  for (const { schema = {}, ...route } of routes) {
    const example = about.examples[schema.operationId ?? '']
    app.route({ ...route, schema: withRequestExample(schema, example), handler: () => {} })
  }
  await app.ready()
  return JSON.stringify(app.swagger())
}

/**
 * Puts each schema with a title and each response under `components`, once, and a reference where it
 * is used. The texts that a failure can have in one place stand beside the reference to its schema.
 */
const shareComponents: SwaggerTransformObject = (document) => {
  const { paths, ...rest } = 'openapiObject' in document ? document.openapiObject : {}
  const schemas: Record<string, object> = {}
  const named = JSON.parse(JSON.stringify(paths), (_key, value) => {
    const { title, literals, ...schema } = Object(value)
    if (!title) return value
    schemas[title] = schema
    const $ref = `#/components/schemas/${title}`
    return literals ? { allOf: [{ $ref }, literals] } : { $ref }
  })
  const responses = shareResponses(named)
  return { ...rest, paths: named, components: { ...rest.components, schemas, responses } }
}

const options = ({ description, tags }: About): FastifyDynamicSwaggerOptions => ({
  // The tag of an operation is its feature. A prefix leaves a slash at the end of a path.
  transform: ({ schema, url }) => ({
    schema: { ...schema, tags: [url.split('/')[2] ?? ''] },
    url: url.replace(/\/$/, ''),
  }),
  transformObject: shareComponents,
  // A literal stays `const`: generators make an enumeration of an `enum` with one value.
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
      license: { name: 'Propietaria' },
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
 * Adds the schema of a route's failures to its answers, with every text that they can have and an
 * example for each text. A body is serialized by its schema, so no other key of a failure is sent.
 * For the hook `onRoute`, after the hooks that add to `config`.
 */
export function documentFailures(route: RouteOptions) {
  const { method, schema, config } = route
  // A HEAD route shares the schema of its GET.
  if (schema?.hide || !schema?.response || method === 'HEAD') return
  const response = schema.response as Record<number, TSchema>
  const failures = failuresOfRoute(route).map((one) => renderFailure(one, config?.failures))
  for (const status of new Set([200, ...failures.map(({ status }) => status)])) {
    const done = [response[status] ?? []].flat()
    const own = failures.filter((failure) => failure.status === status)
    const texts = [...new Set(own.map(({ body }) => body.message))]
    response[status] = {
      ...Type.Union([...done, ...own.slice(0, 1).map((one) => failureSchema(one, texts))]),
      'x-response-description': [...done.map(() => DONE), ...texts].join(' · '),
      'x-examples': answerExamples(
        done,
        own.map(({ body }) => body),
      ),
    }
  }
}

/** Returns the schema of a route's failures with one status. Their text is one of `texts`. */
function failureSchema({ status, shape }: ReturnType<typeof renderFailure>, texts: string[]) {
  const code = shape === 'status' && { statusCode: { type: 'integer', const: status } }
  const text = texts.length === 1 ? { const: texts[0] } : { enum: texts }
  const properties = { ...code, message: { type: 'string', ...text } }
  return { ...BODIES[shape], literals: { type: 'object', required: ['message'], properties } }
}

/** The failures that a route can have: by what it reads, and by what it declares. */
function failuresOfRoute({ method, schema, config }: RouteOptions): Failure[] {
  const { params, querystring, body } = (schema ?? {}) as Record<string, TObject | undefined>
  const usual: FailureArguments[] = [['unexpected'], ['busy']]
  // A path that can't be decoded.
  if (params) usual.push(['unreadable'])
  // A body is read, and may be refused, where none is asked for too.
  if (method !== 'GET') usual.push(['noJson'], ['unreadable'], ['tooLarge'], ['unsupported'])
  const declared = Object.entries(config?.failures ?? {}) as [FailureCode, FailureAnswer][]
  return [
    ...[params, querystring, body].flatMap((part) => (part ? possibleFailures(part) : [])),
    ...declared.flatMap(([code, answer]) => {
      const texts = 'texts' in answer ? answer.texts : [answer.message]
      return texts.map((text) => new Failure(...([code, text] as FailureArguments)))
    }),
    ...usual.map((failure) => new Failure(...failure)),
  ]
}
