import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/**
 * For these kinds of failure the text is always passed to the constructor of Failure. `invalid` means
 * that a field violates a constraint for which the contract has a text. `malformed` means that a field
 * violates any other constraint.
 */
type WithOwnText = 'invalid' | 'malformed'

/**
 * For these kinds the text may be passed to the constructor. Otherwise the route's text is sent, or
 * the text in USUAL if the route declares none.
 */
type WithEitherText = 'unauthenticated' | 'conflict'

/** For these kinds the route's text is sent, or the text in USUAL if the route declares none. */
type WithRouteText =
  | 'noJson'
  | 'unreadable'
  | 'forbidden'
  | 'notFound'
  | 'changed'
  | 'tooLarge'
  | 'unsupported'
  | 'tooMany'
  | 'upload'
  | 'busy'
  | 'unavailable'
  | 'unexpected'

/** The kinds of failure. Each route may answer a kind with a different HTTP status. */
export type FailureCode = WithOwnText | WithEitherText | WithRouteText

/** The kind of the failure, a text in Spanish for the client, and the cause for the log. */
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
    // renderFailure takes an empty text for a missing one, so an empty text is refused here.
    if (text === '') {
      throw new TypeError(`the text of the Failure ${code} is empty`)
    }
    this.code = code
  }
}

/** The shapes of a body (contract, section 7): A with `statusCode`, B with `success`. */
type Shape = 'status' | 'success'

/** The answer to a kind of failure. `message` is sent if the Failure has no text of its own. */
interface AnswerWithMessage {
  status: number
  shape: Shape
  message: string
}

/**
 * The answer to a kind of failure when each Failure has a text of its own. `texts` lists those texts
 * for the OpenAPI document.
 */
interface AnswerWithTexts {
  status: number
  shape: Shape
  texts: readonly string[]
}

export type FailureAnswer = AnswerWithMessage | AnswerWithTexts

/** The answers that a route declares, by kind of failure. They replace those in USUAL. */
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
 * Returns an answer in shape A, `{ statusCode, message }` (contract, section 7). A single text becomes
 * its `message`, and a list becomes its `texts`.
 */
export function statusFailure(status: number, message: string): AnswerWithMessage
export function statusFailure(status: number, texts?: readonly string[]): AnswerWithTexts
export function statusFailure(status: number, text: string | readonly string[] = []) {
  return { status, shape: 'status', ...messageOrTexts(text) }
}

/**
 * Returns an answer in shape B, `{ success: false, message }` (contract, section 7). A single text
 * becomes its `message`, and a list becomes its `texts`.
 */
export function successFailure(status: number, message: string): AnswerWithMessage
export function successFailure(status: number, texts?: readonly string[]): AnswerWithTexts
export function successFailure(status: number, text: string | readonly string[] = []) {
  return { status, shape: 'success', ...messageOrTexts(text) }
}

const messageOrTexts = (text: string | readonly string[]) =>
  typeof text === 'string' ? { message: text } : { texts: text }

/** The answer to each kind of failure on a route that declares no other answer. */
export const USUAL: Record<WithOwnText, AnswerWithTexts> &
  Record<WithEitherText | WithRouteText, AnswerWithMessage> = {
  invalid: statusFailure(400),
  malformed: statusFailure(400),
  noJson: statusFailure(400, 'El cuerpo no es JSON válido'),
  unreadable: statusFailure(400, 'La petición no es válida'),
  unauthenticated: statusFailure(401, 'Sesión no válida o expirada'),
  forbidden: statusFailure(403, 'No tiene permiso para realizar esta acción'),
  notFound: statusFailure(404, 'Recurso no encontrado'),
  conflict: statusFailure(409, 'La petición es incompatible con los datos existentes'),
  changed: statusFailure(412, 'Los datos han cambiado. Vuelva a cargarlos.'),
  tooLarge: statusFailure(413, 'El cuerpo de la petición es demasiado grande'),
  unsupported: statusFailure(415, 'El tipo de contenido debe ser application/json'),
  tooMany: statusFailure(429, 'Demasiadas peticiones. Intente de nuevo más tarde.'),
  upload: statusFailure(500, 'No se pudo subir el archivo'),
  busy: statusFailure(503, 'Servicio ocupado. Intente de nuevo más tarde.'),
  unavailable: statusFailure(503, 'Servicio no disponible. Intente de nuevo más tarde.'),
  unexpected: statusFailure(500, 'Error interno del servidor'),
}

/**
 * Returns the status, the shape and the body for `failure` on a route that declares `failures`. No
 * schema filters the body later, so the body must contain only what the client may see.
 */
export function renderFailure(failure: Failure, failures: FailureAnswers = {}) {
  const usual: FailureAnswer = USUAL[failure.code]
  const answer: FailureAnswer = failures[failure.code] ?? usual
  const { status, shape } = answer
  const message = failure.message || textOf(answer) || textOf(usual)
  const head = shape === 'status' ? { statusCode: status } : { success: false }
  return { status, shape, body: { ...head, message } }
}

const textOf = (answer: FailureAnswer) => ('message' in answer ? answer.message : '')

/** How long a client that was refused with `busy` should wait before it tries again, in seconds. */
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
  const declared = request.routeOptions.config?.failures
  const { status, body } = renderFailure(failure, declared)
  request.failure = failure

  const details = { err: cause }
  if (code === 'unexpected') {
    request.log.error(details, 'unexpected failure')
  } else if (cause) {
    request.log.warn(details, code)
  }

  if (status === 401) reply.header('www-authenticate', 'Bearer')
  if (code === 'busy') reply.header('retry-after', RETRY_AFTER)
  // Fastify would serialize an object by the schema that the route has for this status, and that is
  // the schema of its success.
  const json = JSON.stringify(body)
  return reply.code(status).type('application/json; charset=utf-8').send(json)
}

/** The properties that the errors of Fastify and its plugins have. Any other error may lack them. */
interface FrameworkError {
  code?: string
  statusCode?: number
}

/**
 * Returns a Failure as it is, and converts every other error into a Failure. The text of an error
 * that is no Failure is never sent to a client.
 */
function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  const { code = '', statusCode = 500 } = error as FrameworkError
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new Failure('unsupported')
  if (statusCode < 500) return new Failure('unreadable')
  return new Failure('unexpected', undefined, { cause: error })
}
