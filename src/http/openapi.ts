import type { FastifyDynamicSwaggerOptions, SwaggerTransformObject } from '@fastify/swagger'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import Fastify, { type FastifyInstance, type RouteOptions } from 'fastify'
import { VERSION } from '../version.js'
import { Named } from './envelopes.js'
import {
  Failure,
  type FailureAnswer,
  type FailureArguments,
  type FailureCode,
  renderFailure,
} from './failures.js'
import { possibleFailures } from './validation.js'

/** What the document says of the service as a whole, and of each feature. */
export interface About {
  description: string
  tags: { name: string; description: string }[]
}

/** A route as the document needs it. */
type DocumentedRoute = Pick<RouteOptions, 'method' | 'url' | 'schema'>

/**
 * Collects the routes that are registered after this call, hidden ones left out. The function that it
 * returns makes their document (OpenAPI 3.1, as JSON text) from their schemas.
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
 * The plugin that makes the document works on an application of its own, which answers nothing: few
 * processes are ever asked for the document, and in each the plugin takes 25 ms of the start.
 */
async function makeDocument(routes: DocumentedRoute[], about: About) {
  const { default: swagger } = await import('@fastify/swagger')
  const app = Fastify()
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => () => '')
  await app.register(swagger, options(about))
  for (const route of routes) app.route({ ...route, handler: () => {} })
  await app.ready()
  return JSON.stringify(app.swagger())
}

/**
 * Puts each schema with a title under `components`, once, and references where it is used, beside
 * the literals that are possible there; says as OpenAPI 3.1 does what may be null.
 */
const nameSchemas: SwaggerTransformObject = (document) => {
  const { paths, ...rest } = 'openapiObject' in document ? document.openapiObject : {}
  const schemas: Record<string, object> = {}
  const named = JSON.parse(JSON.stringify(paths), (_key, value) => {
    const { title, nullable, literals, ...schema } = Object(value)
    if (nullable) return { ...schema, type: [schema.type, 'null'] }
    if (!title) return value
    schemas[title] = schema
    const $ref = `#/components/schemas/${title}`
    return literals ? { allOf: [{ $ref }, literals] } : { $ref }
  })
  return { ...rest, paths: named, components: { ...rest.components, schemas } }
}

const options = ({ description, tags }: About): FastifyDynamicSwaggerOptions => ({
  // By feature, and without the slash that a prefix leaves behind.
  transform: ({ schema, url }) => ({
    schema: { ...schema, tags: [url.split('/')[2] ?? ''] },
    url: url.replace(/\/$/, ''),
  }),
  transformObject: nameSchemas,
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Llavero',
      version: VERSION,
      description,
      contact: { name: 'Llavero' },
      license: { name: 'Propietaria', identifier: 'LicenseRef-Proprietary' },
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
  status: Named('FalloStatusCode', { statusCode: Type.Integer(), message }),
  success: Named('FalloSuccess', { success: Type.Literal(false), message }),
}

/**
 * Adds what a route's failures look like to its answers, every text that it can have with them, so
 * that no other key of one leaks: an `onRoute` hook, after those that add to its `config`.
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
      'x-response-description': [...done.map(() => 'Hecho'), ...texts].join(' · '),
    }
  }
}

/** The body of a route's failures with one status, which have one shape, and one of these texts. */
function failureSchema({ status, shape }: ReturnType<typeof renderFailure>, texts: string[]) {
  const code = shape === 'status' && { statusCode: { type: 'integer', enum: [status] } }
  const properties = { ...code, message: { type: 'string', enum: texts } }
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
