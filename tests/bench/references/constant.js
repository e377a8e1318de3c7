// The ceiling: one map's text for everybody, after JWT verification.
import { env, fastifyWithJwt, listen, MAP_URL, verified } from './common.js'

const body = Buffer.from(env('MAP_BODY'))
const app = await fastifyWithJwt()

app.route({
  method: 'GET',
  url: MAP_URL,
  onRequest: verified,
  handler: async (_request, reply) => reply.type('application/json; charset=utf-8').send(body),
})

await listen(app)
