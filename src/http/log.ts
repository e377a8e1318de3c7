import type { FastifyInstance, FastifyLogFn, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.js'

/** The level of audit lines, between `info` and `warn`: LOG_LEVEL=audit leaves out the requests. */
export const AUDIT_LEVEL = 35

/** What takes the log lines: an Output, or a stream. */
export type LogStream = { write(line: string): unknown }

/**
 * JSON lines that name what happened and nothing that was sent: no headers, no bodies, no query
 * text. Of an error only what can't hold a value of the request, which rules out a database
 * error's detail (it quotes the row, hash included).
 */
export function logOptions(level: Config['LOG_LEVEL'], stream?: LogStream) {
  return {
    level,
    ...(stream && { stream }),
    customLevels: { audit: AUDIT_LEVEL },
    serializers: { err: serializeError },
    hooks: {
      // JSON leaves these as they are, and terminals obey them.
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
  interface FastifyBaseLogger {
    audit: FastifyLogFn
  }
  interface FastifyRequest {
    /** `ip`, which can't be read any more once the client has gone. */
    clientIp: string
  }
}

/** A port behind an address, as some proxies add it: each connection would be another client. */
const FORWARDED_PORT = /(?<=^|[\s,])(?:\[([^\][,\s]*)\]|(\d+(?:\.\d+){3}))(?::\d+)?(?=$|[\s,])/g

/**
 * One line for each request when it is answered, `aborted` where the client has not waited for it;
 * its id goes back as `x-request-id`. Health checks and metrics have one only where they fail.
 */
export function logRequests(app: FastifyInstance) {
  app.decorateRequest('clientIp', '')
  app.addHook('onRequest', async (request, reply) => {
    const { headers } = request.raw
    const forwarded = headers['x-forwarded-for']
    if (forwarded) headers['x-forwarded-for'] = String(forwarded).replace(FORWARDED_PORT, '$1$2')
    request.clientIp = request.ip
    // Many requests may wait on one connection, and each listens for its end. Node.js warns of more
    // than ten listeners.
    request.socket.setMaxListeners(0)
    reply.header('x-request-id', request.id)
  })
  onAnswered(app, ({ method, url, clientIp: ip, failure, log }, reply, isAborted) => {
    // The query may hold anything.
    const [path = ''] = url.split('?', 1)
    if (!failure && /^\/(health\/|metrics$)/.test(path)) return
    const ms = Math.round(reply.elapsedTime)
    const status = reply.statusCode
    log.info({ method, path, status, ms, ip, ...(isAborted && { aborted: true }) }, 'request')
  })
}

/**
 * Calls `listener` once for each request: when its answer is out, or can't get out any more because
 * the client has gone, which Fastify's `onResponse` does not report.
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
    // An answer that waits for those before it on its connection has no other sign of the end.
    socket.once('close', onClose)
  })
}
