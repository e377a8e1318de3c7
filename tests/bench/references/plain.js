// The plain way: rows turned into an object in JavaScript, a response schema, and no question
// whether the caller may read this profile's map.
import { fastifyWithJwt, listen, MAP_URL, openPool, verified } from './common.js'

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

const sql = openPool()
const app = await fastifyWithJwt()

app.route({
  method: 'GET',
  url: MAP_URL,
  onRequest: verified,
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

await listen(app)
