import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { busy } from './failure.js'

/** Answers under way at a time. Most are files, open for as long as they are being read. */
const MAX_OPEN = 100

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
    limitOpen(pages)
    await pages.register(swaggerUi, { routePrefix: '/docs' })
  })
})

function limitOpen(app: FastifyInstance) {
  let open = 0
  app.addHook('onRequest', (_request, reply, done) => {
    if (open >= MAX_OPEN) return done(busy())
    open += 1
    reply.raw.once('close', () => {
      open -= 1
    })
    done()
  })
}
