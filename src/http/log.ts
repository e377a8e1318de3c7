import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.js'

/** Where the log lines are written: an Output (output.ts), or a stream. */
export type LogStream = { write(line: string): unknown }

/**
 * Returns the options of the logger. Its lines are JSON. They never have headers, bodies or queries
 * of requests, and of an error only the properties that cannot quote a request or a row. The detail of
 * a database error, for one, quotes the whole row.
 */
export function logOptions(level: Config['LOG_LEVEL'], stream?: LogStream) {
  return {
    level,
    ...(stream && { stream }),
    serializers: { err: serializeError },
    hooks: {
      // JSON does not escape these characters, and terminals act on them.
      streamWrite: (line: string) => line.replace(/[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu, encodeURI),
    },
  }
}

type LoggedError = { [key: string]: unknown; type: string; message: string; stack: string }

function serializeError(error: unknown): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'not an error', stack: '' }
  const { name, message, stack = '', cause } = error
  const { code, constraint_name: constraint } = error as { code?: string; constraint_name?: string }
  const inner = cause === undefined ? {} : { cause: serializeError(cause) }
  return { type: name, message, code, constraint, stack, ...inner }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The same as `ip`, which is undefined once the client has gone. */
    clientIp: string
    /** Who is calling, as the audit line names it; null while nobody is known. */
    who: object | null
    /** The id of what the request writes, where its path does not name it. */
    target: number | null
  }
}

/**
 * Writes one line for each request when it has been answered, with `aborted` when the client has gone
 * before. Successful requests for health and metrics have no line. Every answer has the id of its
 * line as `x-request-id`.
 */
export function logRequests(app: FastifyInstance) {
  app.decorateRequest('clientIp', '')
  app.addHook('onRequest', async (request, reply) => {
    request.clientIp = request.ip
    // Many requests may wait on one connection, and each of them listens for its end. Without this,
    // Node warns of a leak at the eleventh listener.
    request.socket.setMaxListeners(0)
    reply.header('x-request-id', request.id)
  })
  onAnswered(app, ({ method, url, clientIp: ip, failure, log }, reply, isAborted) => {
    // Clients put anything in the query, tokens as well.
    const [path = ''] = url.split('?', 1)
    if (!failure && /^\/(health\/|metrics$)/.test(path)) return
    const ms = Math.round(reply.elapsedTime)
    const status = reply.statusCode
    log.info({ method, path, status, ms, ip, ...(isAborted && { aborted: true }) }, 'request')
  })
}

/**
 * Calls `listener` once for each request: when its answer has been sent, or with `isAborted` when the
 * client has gone before. Fastify's hook `onResponse` does not report the second case.
 */
export function onAnswered(
  app: FastifyInstance,
  listener: (request: FastifyRequest, reply: FastifyReply, isAborted: boolean) => void,
) {
  app.addHook('onSend', async (request, reply) => {
    const { raw } = reply
    const { socket } = request
    function end(isAborted: boolean) {
      raw.off('finish', onFinish)
      socket.off('close', onClose)
      listener(request, reply, isAborted)
    }
    const onFinish = () => end(false)
    const onClose = () => end(true)
    if (socket.destroyed) return void process.nextTick(onClose)
    raw.once('finish', onFinish)
    // An answer may wait for earlier ones on its connection. When that connection ends, Node reports
    // it on the socket alone.
    socket.once('close', onClose)
  })
}

/** One line for every write of the instance, done or refused, and every read that is forbidden. */
export function auditWrites(app: FastifyInstance) {
  app.decorateRequest('who', null)
  app.decorateRequest('target', null)
  // Whether or not anybody is left to be answered.
  app.addHook('onSend', async (request, { statusCode: status }) => {
    const { method, routeOptions, who, failure, clientIp: ip } = request
    const outcome = failure?.code ?? 'done'
    if ((method === 'GET' || method === 'HEAD') && outcome !== 'forbidden') return
    const { id } = request.params as { id?: unknown }
    const target = request.target ?? (Number(id) || null)
    const what = { method, route: routeOptions.url, target, outcome, needs: failure?.needs }
    request.log.info({ who, ip, ...what, status }, 'audit')
  })
}
