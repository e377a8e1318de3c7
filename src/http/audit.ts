import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling, as the audit line names it; null while nobody is known. */
    who: object | null
    /** The id of what the request writes, where its path does not name it. */
    target: number | null
  }
}

/**
 * One log line for every write of the instance and every refused one: who, what, outcome. The
 * request's id is in it as in every line of the request.
 */
export function auditWrites(app: FastifyInstance) {
  app.decorateRequest('who', null)
  app.decorateRequest('target', null)
  // Whether or not anybody is left to be answered.
  app.addHook('onSend', async (request, { statusCode: status }) => {
    const { method, routeOptions, who, failureCode, clientIp: ip } = request
    if (method === 'GET' || method === 'HEAD') return
    const { id } = request.params as { id?: unknown }
    const target = request.target ?? (Number(id) || null)
    const outcome = failureCode ?? 'done'
    request.log.info({ who, ip, method, route: routeOptions.url, target, outcome, status }, 'audit')
  })
}
