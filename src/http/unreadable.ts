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
 * How long a connection stays open after the refusal, in milliseconds. If it were closed at once, a
 * client that is still sending would see a reset connection and not the answer.
 */
const LINGER = 1000

/** A connection of Node's HTTP server. `_httpMessage` is the response that is being written. */
type Connection = Socket & { _httpMessage?: ServerResponse | null }

/**
 * Answers bytes that Node cannot read as a request: bytes that are not HTTP (400), headers that are
 * too large (431), and requests that arrive too slowly (408). The body has shape A (contract,
 * section 7). Logs one line and closes the connection. For Fastify's option `clientErrorHandler`.
 */
export function refuseConnection(
  app: FastifyInstance,
  error: NodeJS.ErrnoException,
  connection: Connection,
) {
  // The client has gone, or the connection is already being closed.
  if (!connection.writable) return

  const response = connection._httpMessage
  if (response?.req.complete) {
    // The response belongs to an earlier request of the connection, which was complete. The client
    // would take a refusal for that response, so the refusal waits until it has been sent.
    connection.pause()
    response.once('close', () => refuseConnection(app, error, connection))
    return
  }

  const status = STATUS_BY_CODE[error.code ?? ''] ?? 400
  const reqId = randomUUID()
  const line = { reqId, status, ip: connection.remoteAddress, reason: error.code }
  app.log.info(line, 'request')
  connection.end(renderAnswer(status, reqId))
  setTimeout(() => connection.destroy(), LINGER).unref()
}

/** Returns a refusal as a whole HTTP answer with headers and body. */
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
 * Answers a request whose path cannot be decoded with the Failure `unreadable`. Fastify runs no hooks
 * for it, so this function adds the headers and logs the request. For Fastify's option
 * `frameworkErrors`.
 */
export function refusePath(_error: Error, request: FastifyRequest, reply: FastifyReply) {
  const { status, body } = unreadable()
  request.log.info({ method: request.method, status, ip: request.ip }, 'request')
  reply.headers({ ...API_HEADERS, 'x-request-id': request.id })
  reply.code(status).send(body)
}

/**
 * Lets Fastify answer two kinds of request that Node would refuse without a body. A request of
 * HTTP/1.1 without `Host` fails with `unreadable`. A request with an unknown `Expect` is answered like
 * one without the header.
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
