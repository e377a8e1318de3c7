import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/**
 * Kinds of failure whose text is given where the Failure is made. `invalid` is a broken constraint
 * for which the contract has a text, `malformed` any other broken constraint of the input.
 */
type WithOwnText = 'invalid' | 'malformed'

/** Kinds of failure whose text may be given there. Otherwise the text of the route is sent. */
type WithEitherText = 'unauthenticated' | 'conflict'

/** Kinds of failure whose text is always that of the route, or else the usual one. */
type WithRouteText =
  | 'noJson'
  | 'unreadable'
  | 'forbidden'
  | 'notFound'
  | 'tooLarge'
  | 'unsupported'
  | 'tooMany'
  | 'upload'
  | 'busy'
  | 'unavailable'
  | 'unexpected'

/** The kinds of failure. They know nothing of HTTP. */
export type FailureCode = WithOwnText | WithEitherText | WithRouteText

/** The kind of a failure, its text for the client in Spanish, and its cause for the log. */
export type FailureArguments =
  | [code: WithOwnText, text: string, options?: ErrorOptions]
  | [code: WithEitherText, text?: string, options?: ErrorOptions]
  | [code: WithRouteText, text?: undefined, options?: ErrorOptions]

/**
 * The reason why a request fails. The code that throws a Failure decides neither the status nor the
 * body of the answer: the route declares both in `config.failures`.
 */
export class Failure extends Error {
  readonly code: FailureCode

  constructor(...[code, text, options]: FailureArguments) {
    super(text, options)
    // The document is made of every declared text at the start, so an empty one ends the start.
    if (text === '') throw new TypeError(`the text of the Failure ${code} is empty`)
    this.code = code
  }
}

/** The shapes of a body (contract, section 7): A with `statusCode`, B with `success`. */
type Shape = 'status' | 'success'

/** The answer to a kind of failure with one text, which is sent unless the Failure has its own. */
interface AnswerWithMessage {
  status: number
  shape: Shape
  message: string
}

/** The answer to a kind of failure that has its own text. `texts` lists them for the document. */
interface AnswerWithTexts {
  status: number
  shape: Shape
  texts: readonly string[]
}

export type FailureAnswer = AnswerWithMessage | AnswerWithTexts

/** The answers of a route, by kind of failure, where they differ from the usual ones. */
export type FailureAnswers = {
  [Code in WithOwnText]?: AnswerWithTexts
} & {
  [Code in WithEitherText]?: FailureAnswer
} & {
  [Code in WithRouteText]?: AnswerWithMessage
}

declare module 'fastify' {
  interface FastifyContextConfig {
    failures?: FailureAnswers
  }
  interface FastifyRequest {
    /** The Failure of the request; null while it has none. */
    failure: Failure | null
  }
}

/**
 * Returns an answer in shape A, `{ statusCode, message }` (contract, section 7): with a text as
 * `message`, with a list as `texts`.
 */
export function statusFailure(status: number, message: string): AnswerWithMessage
export function statusFailure(status: number, texts?: readonly string[]): AnswerWithTexts
export function statusFailure(status: number, text: string | readonly string[] = []) {
  return { status, shape: 'status', ...messageOrTexts(text) }
}

/** Returns the same in shape B, `{ success: false, message }` (contract, section 7). */
export function successFailure(status: number, message: string): AnswerWithMessage
export function successFailure(status: number, texts?: readonly string[]): AnswerWithTexts
export function successFailure(status: number, text: string | readonly string[] = []) {
  return { status, shape: 'success', ...messageOrTexts(text) }
}

const messageOrTexts = (text: string | readonly string[]) =>
  typeof text === 'string' ? { message: text } : { texts: text }

/** The answers of routes that declare none for a kind of failure. */
const USUAL: Record<WithOwnText, AnswerWithTexts> &
  Record<WithEitherText | WithRouteText, AnswerWithMessage> = {
  invalid: statusFailure(400),
  malformed: statusFailure(400),
  noJson: statusFailure(400, 'El cuerpo no es JSON válido'),
  unreadable: statusFailure(400, 'La petición no es válida'),
  unauthenticated: statusFailure(401, 'Sesión no válida o expirada'),
  forbidden: statusFailure(403, 'No tiene permiso para realizar esta acción'),
  notFound: statusFailure(404, 'Recurso no encontrado'),
  conflict: statusFailure(409, 'La petición es incompatible con los datos existentes'),
  tooLarge: statusFailure(413, 'El cuerpo de la petición es demasiado grande'),
  unsupported: statusFailure(415, 'El tipo de contenido debe ser application/json'),
  tooMany: statusFailure(429, 'Demasiadas peticiones. Intente de nuevo más tarde.'),
  upload: statusFailure(500, 'No se pudo subir el archivo'),
  busy: statusFailure(503, 'Servicio ocupado. Intente de nuevo más tarde.'),
  unavailable: statusFailure(503, 'Servicio no disponible. Intente de nuevo más tarde.'),
  unexpected: statusFailure(500, 'Error interno del servidor'),
}

/** Returns the answer to `failure` of a route that declares `failures`: its status and its body. */
export function renderFailure(failure: Failure, failures: FailureAnswers = {}) {
  const answer: FailureAnswer = failures[failure.code] ?? USUAL[failure.code]
  const { status, shape } = answer
  const message = failure.message || textOf(answer) || textOf(USUAL[failure.code])
  const head = shape === 'status' ? { statusCode: status } : { success: false }
  return { status, shape, body: { ...head, message } }
}

const textOf = (answer: FailureAnswer) => ('message' in answer ? answer.message : '')

/** When a client that was refused with `busy` may come again, in seconds. */
const RETRY_AFTER = 5

/** Answers every Failure of the application as its route declares it in `config.failures`. */
export function answerFailures(app: FastifyInstance) {
  app.decorateRequest('failure', null)
  app.setErrorHandler((error, request, reply) => {
    return sendFailure(toFailure(error), request, reply)
  })
  app.setNotFoundHandler((request, reply) => {
    return sendFailure(new Failure('notFound'), request, reply)
  })
}

function sendFailure(failure: Failure, request: FastifyRequest, reply: FastifyReply) {
  const { code, cause } = failure
  const { status, body } = renderFailure(failure, request.routeOptions.config?.failures)
  request.failure = failure

  if (code === 'unexpected') request.log.error({ err: cause }, 'unexpected failure')
  else if (cause) request.log.warn({ err: cause }, code)

  if (status === 401) reply.header('www-authenticate', 'Bearer')
  if (code === 'busy') reply.header('retry-after', RETRY_AFTER)
  return reply.code(status).send(body)
}

/** Turns what Fastify and its plugins throw into a Failure. Their own texts are never sent. */
function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  const { code = '', statusCode = 500 } = error as { code?: string; statusCode?: number }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new Failure('unsupported')
  if (statusCode < 500) return new Failure('unreadable')
  return new Failure('unexpected', undefined, { cause: error })
}
