import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** A failure to be told to the client; `message` is its Spanish text, where its route has none. */
export class Failure extends Error {
  constructor(
    readonly code: FailureCode,
    message = '',
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/**
 * How one kind of failure looks on the wire. A text as `message` is what is always said; else it is
 * what the Failure itself says, and a list has what that may be, for the documentation.
 */
export interface FailureAnswer {
  status: number
  body: 'status' | 'success'
  message: string | readonly string[]
}

/** What departs from the usual answers, by kind of failure. */
export type FailureAnswers = Partial<Record<FailureCode, FailureAnswer>>

declare module 'fastify' {
  interface FastifyContextConfig {
    failures?: FailureAnswers
  }
  interface FastifyRequest {
    /** What went wrong; null while nothing has. */
    failure: Failure | null
  }
}

/** Shape A, `{ statusCode, message }` (contract, section 7). */
export const statusFailure = (status: number, message: FailureAnswer['message'] = []) =>
  ({ status, body: 'status', message }) satisfies FailureAnswer

/** Shape B, `{ success: false, message }` (contract, section 7). */
export const successFailure = (status: number, message: FailureAnswer['message'] = []) =>
  ({ status, body: 'success', message }) satisfies FailureAnswer

/**
 * What can go wrong, in the application's words, and how it looks unless the route says otherwise.
 * `invalid` is a rule that the contract names, `malformed` any other fault of the input.
 */
const USUAL = {
  invalid: statusFailure(400),
  malformed: statusFailure(400),
  noJson: statusFailure(400, 'El cuerpo no es JSON válido'),
  unreadable: statusFailure(400, 'La petición no es válida'),
  unauthenticated: statusFailure(401),
  forbidden: statusFailure(403),
  notFound: statusFailure(404, 'Recurso no encontrado'),
  conflict: statusFailure(409),
  tooLarge: statusFailure(413, 'El cuerpo de la petición es demasiado grande'),
  unsupported: statusFailure(415, 'El tipo de contenido debe ser application/json'),
  tooMany: statusFailure(429),
  upload: statusFailure(500),
  busy: statusFailure(503, 'Servicio ocupado. Intente de nuevo más tarde.'),
  unavailable: statusFailure(503),
  unexpected: statusFailure(500, 'Error interno del servidor'),
} satisfies Record<string, FailureAnswer>

export type FailureCode = keyof typeof USUAL

/** The answer of a route with these `failures` to a Failure: its status and its body. */
export function renderFailure({ code, message: text }: Failure, failures: FailureAnswers = {}) {
  const { status, body, message: usual }: FailureAnswer = failures[code] ?? USUAL[code]
  const message = typeof usual === 'string' ? usual : text
  const shape = body === 'status' ? { statusCode: status } : { success: false }
  return { status, shape: body, body: { ...shape, message } }
}

/** When a client that was refused for lack of room may come again, in seconds. */
const RETRY_AFTER = 5

/** Makes every failure of the instance look as its route declares in `config.failures`. */
export function answerFailures(app: FastifyInstance) {
  app.decorateRequest('failure', null)
  app.setErrorHandler((error, request, reply) => sendFailure(asFailure(error), request, reply))
  app.setNotFoundHandler((request, reply) => sendFailure(new Failure('notFound'), request, reply))
}

function sendFailure(failure: Failure, request: FastifyRequest, reply: FastifyReply) {
  const { status, body } = renderFailure(failure, request.routeOptions.config?.failures)
  request.failure = failure
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  if (failure.code === 'busy') reply.header('retry-after', RETRY_AFTER)
  if (failure.code === 'unexpected') request.log.error({ err: failure.cause }, 'unexpected failure')
  else if (failure.cause) request.log.warn({ err: failure.cause }, failure.code)
  return reply.code(status).send(body)
}

/** What Fastify and its plugins throw, in the application's words; their texts go nowhere. */
function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  const { code = '', statusCode = 500 } = error as { code?: string; statusCode?: number }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new Failure('unsupported')
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new Failure('tooLarge')
  if (statusCode < 500) return new Failure('unreadable')
  return new Failure('unexpected', '', { cause: error })
}
