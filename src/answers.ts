import type { Socket } from 'node:net'
import { type TSchema, Type } from '@sinclair/typebox'
import type {
  ConnectionError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RouteOptions,
} from 'fastify'
import { Failure, type FailureCode } from './failure.js'

/** How one kind of failure looks on the wire; without `message`, the Failure's own text is sent. */
export interface FailureAnswer {
  status: number
  body: 'status' | 'success'
  message?: string | undefined
}

/** What departs from the usual answers, by kind of failure. */
export type FailureAnswers = Partial<Record<FailureCode, FailureAnswer>>

declare module 'fastify' {
  interface FastifyContextConfig {
    failures?: FailureAnswers
  }
  interface FastifyRequest {
    /** What went wrong; null while nothing has. */
    failureCode: FailureCode | null
  }
}

/** Shape A, `{ statusCode, message }` (contract, section 7). */
export const statusFailure = (status: number, message?: string): FailureAnswer => ({
  status,
  body: 'status',
  message,
})

/** Shape B, `{ success: false, message }` (contract, section 7). */
export const successFailure = (status: number, message?: string): FailureAnswer => ({
  status,
  body: 'success',
  message,
})

const USUAL: Record<FailureCode, FailureAnswer> = {
  invalid: statusFailure(400),
  malformed: statusFailure(400),
  unauthenticated: statusFailure(401),
  forbidden: statusFailure(403),
  notFound: statusFailure(404),
  conflict: statusFailure(409),
  tooLarge: statusFailure(413),
  unsupported: statusFailure(415),
  tooMany: statusFailure(429),
  upload: statusFailure(500),
  busy: statusFailure(503),
  unavailable: statusFailure(503),
  unexpected: statusFailure(500, 'Error interno del servidor'),
}

const BODIES = {
  status: Type.Object(
    { statusCode: Type.Integer(), message: Type.String() },
    { description: 'Fallo: código de estado y mensaje' },
  ),
  success: Type.Object(
    { success: Type.Literal(false), message: Type.String() },
    { description: 'Fallo: success false y mensaje' },
  ),
}

/**
 * Makes every failure of the instance look as its route declares in `config.failures`, and adds
 * the failure bodies to the response schemas, so that OpenAPI shows them and no other key leaks.
 */
export function answerFailures(app: FastifyInstance) {
  app.decorateRequest('failureCode', null)
  app.addHook('onRoute', addFailureSchemas)
  app.setErrorHandler((error, request, reply) => sendFailure(asFailure(error), request, reply))
  app.setNotFoundHandler((request, reply) =>
    sendFailure(new Failure('notFound', 'Recurso no encontrado'), request, reply),
  )
}

function sendFailure(failure: Failure, request: FastifyRequest, reply: FastifyReply) {
  const { status, body, message } =
    request.routeOptions.config?.failures?.[failure.code] ?? USUAL[failure.code]
  request.failureCode = failure.code
  if (failure.code === 'unexpected') request.log.error({ err: failure.cause }, 'unexpected failure')
  else if (failure.cause) request.log.warn({ err: failure.cause }, failure.code)
  const text = message ?? failure.message
  return reply
    .code(status)
    .send(
      body === 'status' ? { statusCode: status, message: text } : { success: false, message: text },
    )
}

/** The answer to a request that could not even be read. */
export const UNREADABLE = { statusCode: 400, message: 'La petición no es válida' }

const UNREADABLE_STATUS: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
}

/** Answers on a connection that sent no readable HTTP, and closes it. */
export function refuse(error: ConnectionError, socket: Socket) {
  const [statusCode, reason] = UNREADABLE_STATUS[error.code] ?? [400, 'Bad Request']
  const body = JSON.stringify({ ...UNREADABLE, statusCode })
  if (socket.writable && error.code !== 'ECONNRESET') {
    socket.write(
      `HTTP/1.1 ${statusCode} ${reason}\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    )
  }
  socket.destroySoon()
}

const FASTIFY_FAILURES: Record<string, [FailureCode, string]> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported', 'El tipo de contenido debe ser application/json'],
  FST_ERR_CTP_INVALID_JSON_BODY: ['malformed', 'El cuerpo no es JSON válido'],
}

/** What Fastify and its plugins throw, in the application's words; their texts go nowhere. */
function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  const { code = '', statusCode = 500 } = error as { code?: string; statusCode?: number }
  const known = FASTIFY_FAILURES[code]
  if (known) return new Failure(...known)
  return statusCode < 500
    ? new Failure('malformed', 'La petición no es válida')
    : new Failure('unexpected', '', { cause: error })
}

function addFailureSchemas(route: RouteOptions) {
  // A HEAD route shares the schema of its GET.
  if (route.schema?.hide || !route.schema?.response || route.method === 'HEAD') return
  const response = route.schema.response as Record<number, TSchema>
  const bodiesByStatus = new Map<number, Set<TSchema>>()
  const codes = new Set<FailureCode>([
    ...expectedFailures(route),
    ...(Object.keys(route.config?.failures ?? {}) as FailureCode[]),
  ])
  for (const code of codes) {
    const { status, body } = route.config?.failures?.[code] ?? USUAL[code]
    const known = bodiesByStatus.get(status) ?? new Set(response[status] && [response[status]])
    bodiesByStatus.set(status, known.add(BODIES[body]))
  }
  for (const [status, bodies] of bodiesByStatus) {
    const [only, ...others] = bodies
    response[status] = others.length === 0 && only ? only : Type.Union([...bodies])
  }
}

/** The failures that a route can have whatever it does. */
function expectedFailures({ method, schema }: RouteOptions): FailureCode[] {
  return [
    'unexpected',
    ...(schema?.params || schema?.querystring ? (['malformed'] as const) : []),
    ...(schema?.body && method !== 'GET'
      ? (['malformed', 'tooLarge', 'unsupported'] as const)
      : []),
  ]
}
