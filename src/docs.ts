import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import fp from 'fastify-plugin'

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
  await app.register(swaggerUi, { routePrefix: '/docs' })
})
