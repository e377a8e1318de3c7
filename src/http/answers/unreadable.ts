import { randomUUID } from 'node:crypto'
import { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { Failure, JSON_TYPE, USUAL_ANSWERS } from './failures.js'
import { API_HEADERS } from './headers.js'

/** Takes the place of a URL that the router cannot read. No client can send an empty one. */
export const UNREADABLE_URL = ''

/** How many headers a request may have. Even an empty header takes memory. */
const MAX_HEADERS = 200

/** The status for an error code of Node's HTTP server. For all other codes it is 400. */
const STATUS_BY_REASON: Record<string, number> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/**
 * How long a connection stays open after the refusal, in milliseconds. If it were closed at once, a
 * client that is still sending would see a reset connection instead of the answer.
 */
const LINGER = 1000

/**
 * Answers bytes that Node cannot read as a request: bytes that are not HTTP (400), headers that are
 * too large (431), and requests that arrive too slowly (408). The body has shape A (contract,
 * section 7). Logs one line with the `reason` and closes the connection. The `reason` is an error
 * code of Node, from Fastify's option `clientErrorHandler`, or the method CONNECT.
 */
export function refuseConnection(app: FastifyInstance, connection: Socket, reason: string) {
  // The client has disconnected, or the connection is already being closed.
  if (!connection.writable) return

  // The response to the oldest request without an answer. If that request has been read to its end,
  // the refused bytes came after it. Otherwise they belong to it.
  const response = connection.unanswered?.[0]
  if (response?.req.complete) {
    // The client would mistake the refusal for the answer to the earlier request. So it is sent
    // after that answer.
    connection.pause()
    response.once('close', () => refuseConnection(app, connection, reason))
    return
  }

  const status = STATUS_BY_REASON[reason] ?? 400
  const reqId = randomUUID()
  app.log.info({ reqId, status, ip: connection.remoteAddress, reason }, 'request')

  const [message] = USUAL_ANSWERS.unreadable.messages
  const body = JSON.stringify({ statusCode: status, message })
  // A request that has not been read to its end gets this answer instead of its own.
  response?.detachSocket(connection)
  const refusal = new ServerResponse(new IncomingMessage(connection))
  refusal.assignSocket(connection)
  refusal.writeHead(status, {
    ...API_HEADERS,
    connection: 'close',
    'content-type': JSON_TYPE,
    'content-length': Buffer.byteLength(body),
    'x-request-id': reqId,
  })
  refusal.end(body)
  connection.end()
  // Nobody reads from a connection that is paused, or that has no parser any more after CONNECT.
  // Without this call, Node would not notice when the client closes it.
  connection.resume()
  setTimeout(() => connection.destroy(), LINGER)
}

/**
 * Refuses requests that must not be handled, and those that Node or Fastify would answer with a
 * body of another shape. The Failure is `unreadable` for
 *
 * - a URL that the router cannot read, such as `/%zz`
 * - HTTP/1.1 without `Host`
 * - more than MAX_HEADERS headers
 * - a client that has reset the connection, so that its address is unknown
 * - a connection that has been ended before the handler begins
 *
 * The Failure is `notFound` for an unknown path, before the body is read. The method CONNECT is
 * refused with refuseConnection. An unknown `Expect` header is ignored.
 */
export function refuseOddRequests(app: FastifyInstance) {
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })
  // Without a listener, Node would close the connection without an answer. With one, Node no longer
  // listens to the connection's errors.
  app.server.on('connect', (_request, connection) => {
    connection.on('error', () => connection.destroy())
    refuseConnection(app, connection as Socket, 'CONNECT')
  })
  app.addHook('onRequest', ({ raw, is404, ip, url }, _reply, done) => {
    const lacksHost = raw.httpVersion === '1.1' && raw.headers.host === undefined
    // The names and the values are separate entries.
    const hasTooMany = raw.rawHeaders.length > 2 * MAX_HEADERS
    // Node keeps an address that has been read. So `ip` is still known if the client disconnects
    // later.
    if (lacksHost || hasTooMany || raw.url === UNREADABLE_URL || !ip) {
      throw new Failure('unreadable')
    }
    // Fastify would take an asterisk at the start of a path for a slash.
    if (is404 || url[0] === '*') throw new Failure('notFound')
    done()
  })
  app.addHook('preHandler', ({ socket }, _reply, done) => {
    // The connection has been ended, for example after a 408, so no answer can be sent. The client
    // may already have sent the request again.
    if (socket.writableEnded) throw new Failure('unreadable')
    done()
  })
}
