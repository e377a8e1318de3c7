import swagger, { type SwaggerTransform } from '@fastify/swagger'
import { type TSchema, Type } from '@sinclair/typebox'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { VERSION } from '../../version.js'
import {
  ANSWERS_OF_EVERY_ROUTE,
  ANSWERS_TO_BODIES,
  type FailureAnswer,
} from '../answers/failures.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether successful answers have the header `ETag`, for the OpenAPI document. */
    etag?: true
  }
}

/** The texts of the document about the whole service and about each feature. */
export interface About {
  description: string
  tags: { name: string; description: string }[]
}

/**
 * Collects the routes with an `operationId` that are registered after this call. When the
 * application is ready, documentOf returns the OpenAPI document of these routes.
 */
export async function collectRoutes(app: FastifyInstance, { description, tags }: About) {
  await app.register(swagger, {
    transform: describeOperation,
    // A literal stays a `const`. If it were an `enum` with one value, client generators would make
    // an enumeration type of it.
    convertConstToEnum: false,
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Llavero',
        version: VERSION,
        description,
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
}

/**
 * Returns the OpenAPI document as JSON. Each schema with a title is defined once, under that name.
 */
export function documentOf(app: FastifyInstance): string {
  const schemas: Record<string, object> = {}

  /** Returns the reference to a schema that has a title, and every other value as it is. */
  function define(key: string, value: unknown) {
    // The title in `info` is the name of the service.
    const hasTitle = value instanceof Object && 'title' in value
    if (!hasTitle || key === 'info') return value
    const { title, ...schema } = value
    schemas[String(title)] = schema
    return { $ref: `#/components/schemas/${title}` }
  }

  // JSON.parse calls `define` for the parts of a value before the value itself. So the shared
  // schemas contain references, too.
  const document = JSON.parse(JSON.stringify(app.swagger()), define)
  document.components.schemas = schemas
  return JSON.stringify(document)
}

/** Returns the schema of a route with its tag and with all its answers. */
const describeOperation: SwaggerTransform = ({ schema, url, route }) => {
  if (!schema?.operationId) return { schema: { hide: true }, url }
  // The tag of an operation is its feature, the second segment of the path.
  const [, , feature = ''] = url.split('/')
  return {
    schema: { ...schema, tags: [feature], response: answersOf(route) },
    // Fastify adds the root path of a feature with and without a slash at the end.
    url: url.replace(/\/$/, ''),
  }
}

/** Returns the schemas of all answers of a route, by status. */
function answersOf({ method, schema, config }: RouteOptions) {
  const successes = schema?.response as Record<number, TSchema>
  const failures: FailureAnswer[] = Object.values({
    ...ANSWERS_OF_EVERY_ROUTE,
    // A client may send a body even if the route expects none. Such a body is read.
    ...(method !== 'GET' && ANSWERS_TO_BODIES),
    ...config?.failures,
  })
  const statuses = [...Object.keys(successes).map(Number), ...failures.map(({ status }) => status)]
  const answers = statuses.map((status) => {
    const success = successes[status]
    const failuresOfStatus = failures.filter((failure) => failure.status === status)
    const headers = {
      'x-request-id': REQUEST_ID,
      ...HEADERS[status],
      ...(success && config?.etag && { etag: ETAG }),
    }
    return [status, { ...answerSchema(success, failuresOfStatus), headers }]
  })
  return Object.fromEntries(answers)
}

const REQUEST_ID = {
  type: 'string',
  description: 'Id de la petición, con el que consta en el registro',
}
const ETAG = { type: 'string', description: 'La versión de lo leído o guardado' }
const RETRY_AFTER = {
  'retry-after': {
    type: 'integer',
    description: 'Segundos tras los que conviene repetir la petición',
  },
}

/** The further headers that the answers with these statuses may have. */
const HEADERS: Record<number, object> = {
  401: {
    'www-authenticate': { type: 'string', description: 'El esquema de autenticación: Bearer' },
  },
  403: {
    'x-needs': {
      type: 'string',
      description: 'Lo que falta: un permiso, como en security, o administrador',
    },
  },
  429: RETRY_AFTER,
  503: RETRY_AFTER,
}

/** Returns the schema of all answers with one status: the `success`, if any, and the `failures`. */
function answerSchema(success: TSchema | undefined, failures: FailureAnswer[]) {
  const messages = [...new Set(failures.flatMap(({ messages }) => messages))]
  const isOpen = failures.some(({ messages }) => messages.length === 0)
  const schemas = success ? [success] : []
  const descriptions = success ? [success.description ?? 'Hecho', ...messages] : messages
  const [failure] = failures
  if (failure) schemas.push(failureSchema(failure, messages, isOpen))
  return {
    ...Type.Union(schemas),
    'x-response-description': descriptions.join(' · '),
  }
}

/**
 * Returns the schema of the bodies of failures with one status. Their message is one of `messages`,
 * or any text if `isOpen`.
 */
function failureSchema({ fields }: FailureAnswer, messages: string[], isOpen: boolean): TSchema {
  const text = messages.length === 1 ? { const: messages[0] } : { enum: messages }
  const message = Type.Unsafe({
    type: 'string',
    description: 'Qué ha fallado',
    ...(!isOpen && text),
  })
  const constants = Object.entries(fields).map(([name, value]) => {
    return [name, Type.Literal(value, { description: 'Que la petición ha fallado' })]
  })
  return Type.Object({ ...Object.fromEntries(constants), message })
}
