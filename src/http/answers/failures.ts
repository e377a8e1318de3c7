import type { FastifyInstance } from 'fastify'

/**
 * The answer to a kind of failure. The OpenAPI document lists all `messages`. The first one is the
 * default: a Failure without a text of its own gets it. If a route declares an empty list, each
 * Failure of this kind has a text of its own.
 */
export interface FailureAnswer {
  status: number
  /** The fields of the body beside the `message`. */
  fields: Record<string, number | boolean>
  messages: string[]
}

/** Returns an answer in shape A, `{ statusCode, message }` (contract, section 7). */
export function statusCodeAnswer(status: number, ...messages: string[]): FailureAnswer {
  return { status, fields: { statusCode: status }, messages }
}

/** Returns an answer in shape B, `{ success: false, message }` (contract, section 7). */
export function successFalseAnswer(status: number, ...messages: string[]): FailureAnswer {
  return { status, fields: { success: false }, messages }
}

/** The failures that every route can have, with their usual answers (see USUAL_ANSWERS). */
export const ANSWERS_OF_EVERY_ROUTE = {
  unexpected: statusCodeAnswer(500, 'Error interno del servidor'),
  busy: statusCodeAnswer(503, 'Servicio ocupado. Intente de nuevo más tarde.'),
  unreadable: statusCodeAnswer(400, 'La petición no es válida'),
  malformed: statusCodeAnswer(400),
}

/** The failures that a body can cause, even on a route that expects no body. */
export const ANSWERS_TO_BODIES = {
  noJson: statusCodeAnswer(400, 'El cuerpo no es JSON válido'),
  tooLarge: statusCodeAnswer(413, 'El cuerpo de la petición es demasiado grande'),
  unsupported: statusCodeAnswer(415, 'El tipo de contenido debe ser application/json'),
}

/**
 * The kinds of failure, with the answer of a route that declares no other answer. Wrong input is
 * `invalid` if the route or the field has a text of its own for it. Otherwise it is `malformed`,
 * with the text of the violated constraint. `conflict`, `changed` and `upload` have no usual text:
 * each route that can throw one declares it.
 */
export const USUAL_ANSWERS = {
  ...ANSWERS_OF_EVERY_ROUTE,
  ...ANSWERS_TO_BODIES,
  invalid: statusCodeAnswer(400),
  unauthenticated: statusCodeAnswer(401, 'Sesión no válida o expirada'),
  forbidden: statusCodeAnswer(403, 'No tiene permiso para realizar esta acción'),
  notFound: statusCodeAnswer(404, 'Recurso no encontrado'),
  conflict: statusCodeAnswer(409),
  changed: statusCodeAnswer(412),
  tooMany: statusCodeAnswer(429, 'Demasiados intentos. Intente de nuevo más tarde.'),
  upload: statusCodeAnswer(500),
  unavailable: statusCodeAnswer(503, 'Servicio no disponible. Intente de nuevo más tarde.'),
}

type FailureCode = keyof typeof USUAL_ANSWERS

/**
 * The reason why a request fails: its kind, a text in Spanish for the client, and the cause for the
 * log. The code that throws a Failure decides neither the status nor the body of the answer: the
 * route declares both in `config.failures`.
 */
export class Failure extends Error {
  constructor(
    readonly code: FailureCode,
    text?: string,
    options?: ErrorOptions,
  ) {
    super(text, options)
  }
}

/** The arguments of a new Failure. */
export type FailureArguments = ConstructorParameters<typeof Failure>

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The answers that the route declares, by kind of failure. They replace those in USUAL_ANSWERS.
     */
    failures?: Partial<Record<FailureCode, FailureAnswer>>
  }
}

/** The content type of JSON that is sent as a text or a buffer, such as that of every failure. */
export const JSON_TYPE = 'application/json; charset=utf-8'

/** How long a client that was refused with `busy` should wait before it tries again, in seconds. */
const RETRY_AFTER = 5

/** Answers every Failure of the application as its route declares it in `config.failures`. */
export function answerFailures(app: FastifyInstance) {
  app.setErrorHandler((error, request, reply) => {
    const failure = toFailure(error)
    const { code, cause } = failure
    const declared = request.routeOptions.config.failures
    const { status, fields, messages } = declared?.[code] ?? USUAL_ANSWERS[code]
    request.failure = failure

    const details = { err: cause }
    if (code === 'unexpected') {
      request.log.error(details, 'unexpected failure')
    } else if (cause) {
      request.log.warn(details, code)
    }

    if (status === 401) reply.header('www-authenticate', 'Bearer')
    if (code === 'busy') reply.header('retry-after', RETRY_AFTER)
    // Fastify would serialize an object by the schema that the route has for this status. For a
    // failure with status 200 that is the schema of the success.
    const json = JSON.stringify({ ...fields, message: failure.message || messages[0] })
    return reply.code(status).type(JSON_TYPE).send(json)
  })
}

/**
 * Returns a Failure as it is, and converts every other error into a Failure. The text of an error
 * that is no Failure is never sent to a client.
 */
function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  // Errors of Fastify and its plugins have a code. Anything else that is thrown may lack it.
  const { code } = Object(error)
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new Failure('unsupported')
  if (code === 'FST_UNDER_PRESSURE') return new Failure('busy')
  return new Failure('unexpected', undefined, { cause: error })
}
