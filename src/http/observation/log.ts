import type { FastifyInstance, FastifyLogFn } from 'fastify'

/**
 * The level `audit` of the lines about refused requests. It lies between `info`, the level of other
 * requests, and `warn`.
 */
export const AUDIT_LEVEL = 35

/**
 * The control, format and line-separating characters that JSON.stringify does not escape. A
 * terminal that shows the log would interpret them, so they are percent-encoded.
 */
const UNESCAPED = /[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu

/** How many characters of a request's path a line has. */
const MAX_PATH = 256

/** Where the logger writes its lines. */
export interface LogStream {
  write(line: string): unknown
  /** The number of lines that could not be written and were dropped. */
  readonly dropped?: number
}

/**
 * Returns the options of the logger. The lines are JSON. They never contain headers, bodies or
 * query strings of requests. An error is logged without the properties that may quote a request or
 * a row, like the `detail` of a database error.
 */
export function logOptions(level: string, stream: LogStream) {
  return {
    level,
    stream,
    customLevels: { audit: AUDIT_LEVEL },
    serializers: { err: serializeError },
    hooks: {
      streamWrite: (line: string) => line.replace(UNESCAPED, encodeURI),
    },
  }
}

/** What the logger's types demand of a logged error. All of it may be missing. */
type LoggedError = Record<'type' | 'message' | 'stack', string>

/** Returns what is logged of an error. */
function serializeError(error: unknown): LoggedError {
  // Anything can be thrown, even null.
  const { name, message, stack, code, constraint_name, cause } = Object(error)
  return {
    type: name,
    message,
    code,
    constraint: constraint_name,
    stack,
    cause: cause && serializeError(cause),
  } as LoggedError
}

declare module 'fastify' {
  interface FastifyBaseLogger {
    audit: FastifyLogFn
  }
}

/**
 * Logs one line for each request when its answer is ready. The line has `aborted` if the client has
 * disconnected before. Successful requests for health and metrics are not logged. The `reqId` of a
 * line is the id in the header `x-request-id` of the answer. A refused request has the level
 * `audit` and the fields of `request.refusal`.
 *
 * The hook is `onSend`, because Fastify does not run `onResponse` if the client disconnects.
 */
export function logRequests(app: FastifyInstance) {
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { method, url, ip, failure, refusal, socket } = request
    // The host of a whole URL and the query string are left out, because clients may put anything
    // into them, even secrets. Fastify takes what follows a `#` for a query string, too.
    const path = url.replace(/[?#].*/s, '').replace(/^\w+:\/\/[^/]*\/?/, '/')
    const isProbe = /^\/(health\/|metrics$)/.test(path)
    if (isProbe && !failure) return done()

    const line = {
      method,
      path: path.slice(0, MAX_PATH),
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
      ip,
      // The logger leaves out keys that are undefined.
      aborted: socket.destroyed || undefined,
      ...refusal,
    }
    if (refusal) request.log.audit(line, 'refused')
    else request.log.info(line, 'request')
    done()
  })
}
