import type { FastifyInstance, FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** The id of what the request writes, where its path does not name it. */
    target: number | null
  }
}

/**
 * One log line for every write and every refused one: who, what, outcome. The request's id is in
 * it as in every line of the request.
 */
export function auditWrites(app: FastifyInstance) {
  app.decorateRequest('target', null)
  // Whether or not anybody is left to be answered.
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (isWrite(request)) logWrite(request, reply.statusCode)
    done()
  })
}

function logWrite(request: FastifyRequest, status: number) {
  const { sesion } = request
  request.log.info(
    {
      who: sesion && {
        id: sesion.id,
        nombre: sesion.nombre,
        idPerfil: sesion.idPerfil,
        perfil: sesion.perfil,
      },
      method: request.method,
      route: request.routeOptions.url,
      target: request.target ?? (Number((request.params as { id?: unknown }).id) || null),
      outcome: request.failureCode ?? 'done',
      status,
    },
    'audit',
  )
}

const isWrite = ({ method, routeOptions }: FastifyRequest) =>
  method !== 'GET' && method !== 'HEAD' && routeOptions.config.access !== 'public'
