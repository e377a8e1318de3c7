import type { Writable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { whenAnswered } from './answered.js'
import type { Config } from './config.js'

/**
 * JSON lines that name what happened and nothing that was sent: no headers, no bodies, no query
 * text. Of an error only what can't hold a value of the request, which rules out a database
 * error's detail (it quotes the row, hash included).
 */
export function logOptions(level: Config['logLevel'], stream?: Writable) {
  return {
    level,
    ...(stream && { stream }),
    serializers: {
      err: serializeError,
      req: () => ({}),
      res: () => ({}),
    },
  }
}

type LoggedError = {
  [key: string]: unknown
  type: string
  message: string
  code?: string | undefined
  constraint?: string | undefined
  stack: string
  cause?: LoggedError | undefined
}

function serializeError(error: unknown): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'not an error', stack: '' }
  const { name, message, stack = '', cause } = error
  const { code, constraint_name: constraint } = error as { code?: string; constraint_name?: string }
  return {
    type: name,
    message,
    code,
    constraint,
    stack,
    ...(cause === undefined ? {} : { cause: serializeError(cause) }),
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Its address, which is not there to be read once it has gone; none before the first hook. */
    clientIp?: string
  }
}

/**
 * One line for each request when it is answered, `aborted` where the client has not waited for it;
 * its id goes back as `x-request-id`.
 */
export function logRequests(app: FastifyInstance) {
  app.decorateRequest('clientIp', '')
  app.addHook('onRequest', (request, reply, done) => {
    request.clientIp = request.ip
    reply.header('x-request-id', request.id)
    done()
  })
  whenAnswered(app, logAnswer)
}

/** The line of one request, also for one that no hook was called for. */
export function logAnswer(request: FastifyRequest, reply: FastifyReply, isAborted = false) {
  request.log.info(
    {
      method: request.method,
      path: pathOf(request),
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
      ip: request.clientIp ?? request.ip,
      ...(isAborted && { aborted: true }),
    },
    'request',
  )
}

/** The path without its query, which may hold anything. */
const pathOf = ({ url }: FastifyRequest) => url.split('?', 1)[0]
