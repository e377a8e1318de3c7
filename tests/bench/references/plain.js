// The plain way: Fastify and postgres.js, rows turned into an object in JavaScript, a response
// schema, and no question whether the caller may read this profile's map. In JavaScript, so that no
// loader counts in its start and memory.
import jwt from '@fastify/jwt'
import Fastify from 'fastify'
import postgres from 'postgres'

const env = (/** @type {string} */ name) => process.env[name] ?? ''

const flag = { type: 'boolean' }
const accion = {
  type: 'object',
  properties: {
    nombreModulo: { type: 'string' },
    bitAgregar: flag,
    bitEditar: flag,
    bitConsulta: flag,
    bitEliminar: flag,
    bitDetalle: flag,
  },
}
const mapa = {
  type: 'object',
  properties: {
    success: { type: 'boolean' },
    permisos: { type: 'object', additionalProperties: accion },
  },
}
const params = { type: 'object', properties: { idPerfil: { type: 'integer' } } }

// As many connections as the service has by default.
const sql = postgres(env('DATABASE_URL'), { max: 10, fetch_types: false })
const app = Fastify()
await app.register(jwt, { secret: env('JWT_SECRET'), verify: { algorithms: ['HS256'] } })
app.get('/health/live', async () => ({ status: 'ok' }))

app.route({
  method: 'GET',
  url: '/api/permisos/mis-permisos/:idPerfil',
  onRequest: (request) => request.jwtVerify(),
  schema: { params, response: { 200: mapa } },
  handler: async (request) => {
    const { idPerfil } = /** @type {{ idPerfil: number }} */ (request.params)
    const rows = await sql`
      select "strNombreModulo" as "nombreModulo", "bitAgregar", "bitEditar", "bitConsulta",
        "bitEliminar", "bitDetalle"
      from permisos_perfil
      join modulo on modulo.id = "idModulo"
      where "idPerfil" = ${idPerfil}
      order by permisos_perfil.id
    `
    /** @type {Record<string, object>} */
    const permisos = {}
    for (const row of rows) permisos[row.nombreModulo] = row
    return { success: true, permisos }
  },
})

await app.listen({ host: '127.0.0.1', port: Number(env('PORT')) })
