import type { Socket } from 'node:net'
import { type TSchema, Type } from '@sinclair/typebox'
import type {
  ConnectionError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RouteOptions,
} from 'fastify'
import { drainBody } from './body.js'
import { Failure, type FailureCode } from './failure.js'
import { owesAnswer } from './pipeline.js'

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
  app.setNotFoundHandler(async () => {
    throw notFound()
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

function failureBody({ status, body, message }: FailureAnswer, text: string) {
  return body === 'status'
    ? { statusCode: status, message: message ?? text }
    : { success: false, message: message ?? text }
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

const FASTIFY_FAILURES: Record<string, [FailureCode, string]> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported', 'El tipo de contenido debe ser application/json'],
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
  const failures = route.config?.failures ?? {}
  const codes = new Set([...expectedFailures(route), ...(Object.keys(failures) as FailureCode[])])
  const examples = new Map<number, Partial<Record<FailureAnswer['body'], { message: string }[]>>>()
  for (const code of codes) {
    const answer = failures[code] ?? USUAL[code]
    const bodies = examples.get(answer.status) ?? {}
    const example = failureBody(answer, EXAMPLES[code])
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

/** What a failure may say, for the documentation, where neither the route nor USUAL says it. */
const EXAMPLES: Record<FailureCode, string> = {
  invalid: 'El nombre es obligatorio',
  malformed: 'El campo bitAgregar debe ser booleano',
  unauthenticated: 'Sesión no válida o expirada',
  forbidden: 'No tiene permiso para realizar esta acción',
  notFound: 'Perfil no encontrado',
  conflict: 'El correo electrónico ya está registrado',
  tooLarge: 'El cuerpo de la petición es demasiado grande',
  unsupported: 'El tipo de contenido debe ser application/json',
  tooMany: 'Demasiados intentos. Intente de nuevo más tarde.',
  upload: 'No se pudo subir la imagen',
  busy: 'Servicio ocupado. Intente de nuevo más tarde.',
  unavailable: 'El servicio de validación del captcha no está disponible.',
  unexpected: 'Error interno del servidor',
}

/** The failures that a route can have whatever it does. */
function expectedFailures({ method, schema, config }: RouteOptions): FailureCode[] {
  // A body is read, and may be refused, where none is asked for too.
  const readsBody = method !== 'GET'
  return [
    'unexpected',
    'busy',
    ...(config?.access === 'public' ? [] : (['unauthenticated', 'forbidden'] as const)),
    ...(schema?.params || schema?.querystring ? (['malformed'] as const) : []),
    ...(readsBody ? (['malformed', 'tooLarge', 'unsupported'] as const) : []),
  ]
}
