import { finished, type Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Failure } from '../answers/failures.js'

/** The largest body of a route that declares no `bodyLimit` of its own, in bytes. */
export const BODY_LIMIT = 64 * 1024

/**
 * How many bytes all bodies may have together while they are read and handled. Each of them takes
 * several times its size in memory.
 */
const BODY_MEMORY = 64 * 1024 * 1024
/**
 * How many bytes at the start of each body are not counted. So a request to a route with this
 * `bodyLimit` is never refused for lack of memory.
 */
export const UNCOUNTED_BYTES = 16 * 1024

/** Up to this many bytes, a body may have any number of JSON values. */
const FREE_VALUES_BYTES = 1024 * 1024
/**
 * A decoder that throws if a byte is not valid UTF-8, and keeps a byte order mark, which is not
 * JSON.
 */
const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/**
 * Matches a text that may have more than 1,000 JSON values. It counts `,`, `[` and `{`: each value
 * but the outermost one follows one of them. Those in strings count, too, so a text with fewer
 * values may match.
 */
const MANY_VALUES = /^(?:[^,[{]*[,[{]){1000}/

/**
 * Makes the application parse JSON bodies and refuse all other content types. An empty body counts
 * as `null`. An answer is sent only after the whole body has arrived, except if Node cannot read
 * the request (refuseConnection in answers/unreadable.ts). Four Failures may be thrown:
 *
 * - `tooLarge` when the body has more bytes than the `bodyLimit` of the route, or when it is larger
 *   than FREE_VALUES_BYTES and may have more than 1,000 values
 * - `busy` when the bodies of all users, or those of this user, have too many bytes in memory
 * - `noJson` when the body is not valid JSON in UTF-8
 * - `unreadable` when the client disconnects before it has sent the whole body
 *
 * `largestBody` is the largest `bodyLimit` of all routes, in bytes.
 */
export function parseJsonBodies(app: FastifyInstance, largestBody: number) {
  const maxBytes = Math.max(BODY_MEMORY, 2 * largestBody)
  let bytesOfAll = 0
  // Entries are never removed: a Map with many deletions takes the garbage collector longer
  // (docs/rejected.md). There is at most one entry for each user.
  const bytesByUser = new Map<number | undefined, number>()
  /**
   * The turn of the event loop for the last body above BODY_LIMIT. The next one gets a later turn.
   */
  let turn = Promise.resolve()
  app.removeAllContentTypeParsers()

  /**
   * Returns the value of the JSON body in `payload`. Fastify's own reader (`parseAs: 'buffer'`)
   * would keep each piece until the end, and could not count the bytes before.
   */
  async function readJson(request: FastifyRequest, payload: Readable) {
    const { bodyLimit } = request.routeOptions
    let body = Buffer.alloc(0)
    let size = 0

    try {
      // The iterator must not destroy the stream, or the client would get no answer.
      for await (const piece of payload.iterator({ destroyOnReturn: false })) {
        const end = size + piece.length
        if (end > bodyLimit) throw new Failure('tooLarge')
        setBodyBytes(request, Math.max(0, end - UNCOUNTED_BYTES))
        // Double the buffer when it is full.
        if (end > body.length) body = Buffer.concat([body], Math.min(2 * end, bodyLimit))
        piece.copy(body, size)
        size = end
      }
    } catch (error) {
      throw payload.destroyed ? new Failure('unreadable') : error
    }
    // Parsing a larger body may take 100 ms, so there is at most one in each turn of the event
    // loop.
    if (size > BODY_LIMIT) {
      turn = turn.then(() => setImmediate())
      await turn
    }
    return parseBody(body.subarray(0, size))
  }
  app.addContentTypeParser('application/json', readJson)

  /**
   * Sets how many bytes of a request's body are counted. Throws the Failure `busy` if all bodies
   * would have more than `maxBytes`, or those of the user more than half of that.
   */
  function setBodyBytes(request: FastifyRequest, bytes: number) {
    const { userId } = request
    const more = bytes - (request.bodyBytes ?? 0)
    const bytesOfUser = (bytesByUser.get(userId) ?? 0) + more
    const isTooMuch = bytesOfAll + more > maxBytes || bytesOfUser > maxBytes / 2
    if (isTooMuch) throw new Failure('busy')
    request.bodyBytes = bytes
    bytesOfAll += more
    bytesByUser.set(userId, bytesOfUser)
  }

  // Many clients read the answer only after they have sent everything. So the answer waits until
  // the rest of the body has been read and discarded, or the client has disconnected. A client that
  // sends for longer than `requestTimeout` gets a 408 from refuseConnection.
  app.addHook('onSend', (request, reply, _payload, done) => {
    setBodyBytes(request, 0)
    // After a refused body, Fastify sets `Connection: close`. This answer waits for the whole body,
    // so the connection can stay open, and the header is removed, unless the client or a stop
    // closes the connection. If the header is not set, `removeHeader` is not called: after it, Node
    // would add no `Connection: keep-alive`.
    const isKept = reply.raw.shouldKeepAlive && !app.isStopping
    if (isKept && reply.hasHeader('connection')) reply.removeHeader('connection')
    const { raw } = request
    if (raw.complete) return done()
    finished(raw.resume(), () => done())
  })
}

/** Returns the value of a JSON body. Throws the Failures `tooLarge` and `noJson`. */
function parseBody(body: Buffer) {
  // Parsing a large body of many small values blocks the process for seconds. A few long strings of
  // the same total size are parsed quickly.
  const isLarge = body.length > FREE_VALUES_BYTES
  if (isLarge && MANY_VALUES.test(body.toString('latin1'))) throw new Failure('tooLarge')
  try {
    return JSON.parse(UTF_8.decode(body) || 'null')
  } catch {
    // The parser's own error is discarded, because its message quotes the body.
    throw new Failure('noJson')
  }
}
