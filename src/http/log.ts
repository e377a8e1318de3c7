import type { FastifyInstance, FastifyLogFn, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.js'

/** The level of audit lines, between `info` and `warn`: LOG_LEVEL=audit leaves out the requests. */
export const AUDIT_LEVEL = 35

/** Where the log lines are written: an Output (output.ts), or a stream. */
export type LogStream = { write(line: string): unknown }

/**
 * Returns the options of the logger. The lines are JSON. They never contain headers, bodies or
 * queries of requests, and an error is logged without the properties that may quote a request or a
 * row, like the detail of a database error.
 */
export function logOptions(level: Config['LOG_LEVEL'], stream?: LogStream) {
  return {
    level,
    ...(stream && { stream }),
    customLevels: { audit: AUDIT_LEVEL },
    serializers: { err: serializeError },
    hooks: {
      // JSON does not escape these characters, and terminals act on them.
      streamWrite: (line: string) => line.replace(/[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu, encodeURI),
    },
  }
}

interface LoggedError {
  [key: string]: unknown
  type: string
  message: string
  stack: string
}

/** An error with the properties that those of the database have. */
type DatabaseError = Error & { code?: string; constraint_name?: string }

function serializeError(error: unknown): LoggedError {
  if (!(error instanceof Error)) {
    return { type: typeof error, message: 'not an error', stack: '' }
  }
  const { code, constraint_name: constraint } = error as DatabaseError
  const { name, message, stack = '', cause } = error
  const inner = cause === undefined ? {} : { cause: serializeError(cause) }
  return { type: name, message, code, constraint, stack, ...inner }
}

declare module 'fastify' {
  interface FastifyBaseLogger {
    audit: FastifyLogFn
  }
  interface FastifyRequest {
    /** The same as `ip`, which is undefined once the client has gone. */
    clientIp: string
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
    // Many requests may wait on one connection, and each of them listens for its end. Node would
    // warn of a leak at the eleventh listener.
    request.socket.setMaxListeners(0)
    reply.header('x-request-id', request.id)
  })
  onAnswered(app, ({ method, url, clientIp: ip, failure, log }, reply, isAborted) => {
    // Clients put anything in the query, tokens as well.
    const [path = ''] = url.split('?', 1)
    if (!failure && /^\/(health\/|metrics$)/.test(path)) return
    const ms = Math.round(reply.elapsedTime)
    const status = reply.statusCode
    const line = { method, path, status, ms, ip }
    log.info(isAborted ? { ...line, aborted: true } : line, 'request')
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
