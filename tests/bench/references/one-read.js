// One primary-key read and one map's text for everybody, after JWT verification.
import { env, fastifyWithJwt, listen, MAP_URL, openPool, verified } from './common.js'

const body = Buffer.from(env('MAP_BODY'))
const sql = openPool()
const app = await fastifyWithJwt()

app.route({
  method: 'GET',
  url: MAP_URL,
  onRequest: verified,
  handler: async (request, reply) => {
    const { id } = /** @type {{ id: number }} */ (/** @type {unknown} */ (request.user))
    const [usuario] = await sql`
      select id, "strNombreUsuario", "idPerfil", "idEstadoUsuario" from usuario where id = ${id}
    `
    if (!usuario) return reply.code(401).send()
    return reply.type('application/json; charset=utf-8').send(body)
  },
})

await listen(app)
