import helmet from '@fastify/helmet'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import type { RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import {
  busy,
  Failure,
  type FailureAnswer,
  type FailureCode,
  noJson,
  renderFailure,
  tooLarge,
  unsupported,
} from './failures.js'
import { faultyFields } from './validation.js'

/** `/docs` (Swagger UI) and `/docs/json` (OpenAPI 3.1) from the schemas of the routes after it. */
export default fp(async (app) => {
  await app.register(swagger, {
    // By feature, and without the slash that a prefix leaves behind.
    transform: ({ schema, url }) => ({
      schema: { ...schema, tags: [url.split('/')[2] ?? ''] },
      url: url.replace(/\/$/, ''),
    }),
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Llavero',
        version: '0.1.0',
        description: 'Control de acceso: usuarios, perfiles, módulos y la matriz de permisos.',
      },
      servers: [{ url: '/' }],
      tags: [
        { name: 'auth', description: 'Inicio de sesión' },
        { name: 'usuario', description: 'Usuarios' },
        { name: 'perfil', description: 'Perfiles' },
        { name: 'modulo', description: 'Módulos' },
        { name: 'permisos', description: 'La matriz de permisos' },
      ],
      components: {
        securitySchemes: {
          cookie: { type: 'apiKey', in: 'cookie', name: 'auth_token' },
          bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        },
      },
      security: [{ cookie: [] }, { bearer: [] }],
    },
  })
  await app.register(async (pages) => {
    await pages.register(helmet, {
      contentSecurityPolicy: {
        directives: {
          'img-src': ["'self'", 'data:'],
          // A deployment without TLS in front would lose the page's own assets.
          'upgrade-insecure-requests': null,
        },
      },
    })
    await pages.register(swaggerUi, { routePrefix: '/docs' })
  })
})

const message = Type.String({ description: 'Qué ha fallado' })
const BODIES = {
  status: Type.Object({ statusCode: Type.Integer(), message }, { description: 'Fallo' }),
  success: Type.Object({ success: Type.Literal(false), message }, { description: 'Fallo' }),
}

/**
 * Adds what a route's failures look like to its answers, so that no other key of one leaks: an
 * `onRoute` hook, after those that add to its `config`.
 */
export function documentFailures(route: RouteOptions) {
  const { method, schema, config } = route
  // A HEAD route shares the schema of its GET.
  if (schema?.hide || !schema?.response || method === 'HEAD') return
  const response = schema.response as Record<number, TSchema>
  const failures = possibleFailures(route).map((failure) =>
    renderFailure(failure, config?.failures),
  )
  for (const status of new Set(failures.map((failure) => failure.status))) {
    const schemas = (['status', 'success'] as const).flatMap((shape) => {
      const bodies = failures.filter((other) => other.status === status && other.shape === shape)
      const examples = [...new Map(bodies.map(({ body }) => [body.message, body])).values()]
      return examples.length > 0 ? [{ ...BODIES[shape], examples }] : []
    })
    const all = [response[status] ?? [], schemas].flat()
    response[status] = all.length === 1 && all[0] ? all[0] : Type.Union(all)
  }
}

/** The failures that a route can have: by what it reads, and by what it declares. */
function possibleFailures({ method, schema, config }: RouteOptions): Failure[] {
  const { params, querystring, body } = (schema ?? {}) as Record<string, TObject | undefined>
  const declared = Object.entries(config?.failures ?? {}) as [FailureCode, FailureAnswer][]
  return [
    new Failure('unexpected'),
    busy(),
    ...[params, querystring, body].flatMap((part) => (part ? faultyFields(part) : [])),
    // A body is read, and may be refused, where none is asked for too.
    ...(method === 'GET' ? [] : [noJson(), tooLarge(), unsupported()]),
    ...declared.flatMap(([code, { message }]) =>
      [message].flat().map((text) => new Failure(code, text)),
    ),
  ]
}
