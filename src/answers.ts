import type { Socket } from 'node:net'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import type {
  ConnectionError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RouteOptions,
} from 'fastify'
import { drainBody, noJson, tooLarge } from './body.js'
import { busy, Failure, type FailureCode, forbidden, unauthenticated } from './failure.js'
import { owesAnswer } from './pipeline.js'
import { faultyFields } from './validation.js'

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
    failureCode: FailureCode | null
  }
}

/** Shape A, `{ statusCode, message }` (contract, section 7). */
export const statusFailure = (
  status: number,
  message: FailureAnswer['message'] = [],
): FailureAnswer => ({ status, body: 'status', message })

/** Shape B, `{ success: false, message }` (contract, section 7). */
export const successFailure = (
  status: number,
  message: FailureAnswer['message'] = [],
): FailureAnswer => ({ status, body: 'success', message })

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
export function answerFailures(app: FastifyInstance, bodyLimit: number) {
  app.decorateRequest('failureCode', null)
  app.addHook('onRoute', addFailureSchemas)
  app.setErrorHandler(async (error, request, reply) => {
    const failure = asFailure(error)
    // What is left of its body may take long to come in.
    request.leavePlace?.()
    const isDrained = await drainBody(request, bodyLimit)
    if (!isDrained) reply.header('connection', 'close')
    return sendFailure(failure, request, reply)
  })
}

/** There is nothing under that path. */
export const notFound = () => new Failure('notFound', 'Recurso no encontrado')

/** When a client that was refused for lack of room may come again, in seconds. */
const RETRY_AFTER = 5

function sendFailure(failure: Failure, request: FastifyRequest, reply: FastifyReply) {
  const answer = request.routeOptions.config?.failures?.[failure.code] ?? USUAL[failure.code]
  request.failureCode = failure.code
  if (failure.code === 'busy') reply.header('retry-after', RETRY_AFTER)
  if (failure.code === 'unexpected') request.log.error({ err: failure.cause }, 'unexpected failure')
  else if (failure.cause) request.log.warn({ err: failure.cause }, failure.code)
  return reply.code(answer.status).send(failureBody(answer, failure.message))
}

function failureBody({ status, body, message: usual }: FailureAnswer, text: string) {
  const message = typeof usual === 'string' ? usual : text
  return body === 'status' ? { statusCode: status, message } : { success: false, message }
}

/** The answer to a request that could not even be read. */
export const UNREADABLE = { statusCode: 400, message: 'La petición no es válida' }

const UNREADABLE_STATUS: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
}

/**
 * Answers on a connection that sent no readable HTTP, and closes it. Where it waits for another
 * answer, this one would be taken for that.
 */
export function refuse(error: ConnectionError, socket: Socket) {
  const [statusCode, reason] = UNREADABLE_STATUS[error.code] ?? [400, 'Bad Request']
  const body = JSON.stringify({ ...UNREADABLE, statusCode })
  if (socket.writable && error.code !== 'ECONNRESET' && !owesAnswer(socket)) {
    socket.write(
      `HTTP/1.1 ${statusCode} ${reason}\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    )
  }
  socket.destroySoon()
}

const unsupported = () =>
  new Failure('unsupported', 'El tipo de contenido debe ser application/json')

/** What Fastify and its plugins throw, in the application's words; their texts go nowhere. */
function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  const { code = '', statusCode = 500 } = error as { code?: string; statusCode?: number }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return unsupported()
  return statusCode < 500
    ? new Failure('malformed', 'La petición no es válida')
    : new Failure('unexpected', '', { cause: error })
}

function addFailureSchemas(route: RouteOptions) {
  // A HEAD route shares the schema of its GET.
  if (route.schema?.hide || !route.schema?.response || route.method === 'HEAD') return
  const failures = route.config?.failures ?? {}
  const examples = new Map<number, Partial<Record<FailureAnswer['body'], { message: string }[]>>>()
  for (const { code, message } of possibleFailures(route)) {
    const answer = failures[code] ?? USUAL[code]
    const bodies = examples.get(answer.status) ?? {}
    const example = failureBody(answer, message)
    const known = bodies[answer.body] ?? []
    const isNew = known.every(({ message }) => message !== example.message)
    bodies[answer.body] = isNew ? [...known, example] : known
    examples.set(answer.status, bodies)
  }

  const response = route.schema.response as Record<number, TSchema>
  for (const [status, bodies] of examples) {
    const schemas: TSchema[] = response[status] ? [response[status]] : []
    if (bodies.status) schemas.push({ ...BODIES.status, examples: bodies.status })
    if (bodies.success) schemas.push({ ...BODIES.success, examples: bodies.success })
    response[status] = schemas.length === 1 && schemas[0] ? schemas[0] : Type.Union(schemas)
  }
}

/** The failures that a route can have: whatever it does, for its schemas, and by its config. */
function possibleFailures({ method, schema, config }: RouteOptions): Failure[] {
  const { params, querystring, body } = (schema ?? {}) as Record<string, TObject | undefined>
  const declared = Object.entries(config?.failures ?? {}) as [FailureCode, FailureAnswer][]
  return [
    new Failure('unexpected'),
    busy(),
    ...(config?.access === 'public' ? [] : [unauthenticated(), forbidden()]),
    ...[params, querystring, body].flatMap((part) => (part ? faultyFields(part) : [])),
    // A body is read, and may be refused, where none is asked for too.
    ...(method === 'GET' ? [] : [noJson(), tooLarge(), unsupported()]),
    ...declared.flatMap(([code, { message }]) =>
      [message].flat().map((text) => new Failure(code, text)),
    ),
  ]
}
