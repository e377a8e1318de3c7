import { randomUUID } from 'node:crypto'
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Failure, renderFailure } from './failures.js'
import { API_HEADERS } from './headers.js'

/** The status for an error code of Node's HTTP parser; for all other codes it is 400. */
const STATUS_BY_CODE: Record<string, number> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/**
 * How long a connection stays open behind the refusal, in milliseconds. A client that is still sending
 * would see a reset connection and not the answer if it were closed at once.
 */
const LINGER = 1000

/** A connection to Node's HTTP server, which keeps the response that is being written in it. */
type Connection = Socket & { _httpMessage?: ServerResponse | null }

/**
 * Answers bytes that Node cannot read as a request (no HTTP, headers too large, headers too late)
 * with shape A (contract, section 7) and status 400, 431 or 408, logs one line, and closes the
 * connection. For Fastify's option `clientErrorHandler`.
 */
export function refuseConnection(
  app: FastifyInstance,
  error: NodeJS.ErrnoException,
  connection: Connection,
) {
  // The client has gone, or its connection is being closed already.
  if (!connection.writable) return

  const response = connection._httpMessage
  if (response?.req.complete) {
    // An earlier request was read well. The client would take the refusal for its answer, so that
    // answer goes out first.
    connection.pause()
    response.once('close', () => refuseConnection(app, error, connection))
    return
  }

  const status = STATUS_BY_CODE[error.code ?? ''] ?? 400
  const reqId = randomUUID()
  app.log.info({ reqId, status, ip: connection.remoteAddress, reason: error.code }, 'request')
  connection.end(renderAnswer(status, reqId))
  setTimeout(() => connection.destroy(), LINGER).unref()
}

/** A refusal as the bytes of a whole HTTP answer. */
function renderAnswer(status: number, id: string) {
  const body = JSON.stringify({ ...unreadable().body, statusCode: status })
  const headers = {
    ...API_HEADERS,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-request-id': id,
    date: new Date().toUTCString(),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}

const unreadable = () => renderFailure(new Failure('unreadable'))

/**
 * Answers a path that cannot be decoded, for which Fastify runs no hook, with the same failure. For
 * Fastify's option `frameworkErrors`.
 */
export function refusePath(_error: Error, request: FastifyRequest, reply: FastifyReply) {
  const { status, body } = unreadable()
  request.log.info({ method: request.method, status, ip: request.ip }, 'request')
  reply.headers({ ...API_HEADERS, 'x-request-id': request.id })
  reply.code(status).send(body)
}

/**
 * Has Fastify answer what Node would answer by itself, without a body: a request of HTTP/1.1 without
 * `Host` with the same failure, and one that expects something unknown as if it did not.
 */
export function answerOddRequests(app: FastifyInstance) {
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })
  app.addHook('onRequest', async ({ raw }) => {
    const needsHost = raw.httpVersion === '1.1'
    if (needsHost && raw.headers.host === undefined) throw new Failure('unreadable')
  })
}
