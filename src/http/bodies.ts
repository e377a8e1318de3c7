import { isUtf8 } from 'node:buffer'
import { finished, type Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Failure } from './failures.js'

/** The largest body of a route that declares no `bodyLimit` of its own, in bytes. */
export const BODY_LIMIT = 64 * 1024

/** The largest body that may have any number of JSON values, in bytes. */
const FREE_SIZE = 1024 * 1024
/** How many JSON values a body larger than FREE_SIZE may have. */
const MAX_VALUES = 1000

/**
 * Makes the application parse JSON bodies and refuse all other content types. An empty body counts as
 * a missing one. Three Failures may be thrown:
 *
 * - `tooLarge` when the body has more bytes than the `bodyLimit` of the route, or when it is larger
 *   than FREE_SIZE and may have more than MAX_VALUES values (see estimateValues)
 * - `noJson` when the body is not valid JSON in UTF-8
 * - `unreadable` when the client disconnects before it has sent the whole body
 */
export function parseJsonBodies(app: FastifyInstance) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', parseBody)
}

async function parseBody(request: FastifyRequest, payload: Readable) {
  const { bodyLimit } = request.routeOptions
  const announced = Number(request.headers['content-length'])
  if (announced > bodyLimit) throw new Failure('tooLarge')

  const body = await readBody(payload, bodyLimit)
  if (body.length === 0) return undefined
  // Parsing a large body of many small values blocks the process for seconds. A few long strings of
  // the same total size are parsed quickly.
  const isSlowToParse = body.length > FREE_SIZE && estimateValues(body) > MAX_VALUES
  if (isSlowToParse) throw new Failure('tooLarge')
  // `toString` would replace each byte that is not valid UTF-8, and the altered text would be stored.
  if (!isUtf8(body)) throw new Failure('noJson')

  try {
    return JSON.parse(body.toString())
  } catch {
    // The parser's own error is discarded, because its message quotes the body.
    throw new Failure('noJson')
  }
}

/**
 * Returns all bytes of `payload`. A client may send its body byte by byte, and a list of such pieces
 * would need far more memory than the body. So each piece is copied into one buffer when it arrives.
 */
function readBody(payload: Readable, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let buffer: Buffer = Buffer.alloc(0)
    let length = 0

    function add(piece: Buffer) {
      const newLength = length + piece.length
      if (newLength > limit) {
        payload.off('data', add)
        // Without this line, the callback of `finished` below would keep the buffer in memory until
        // the client has sent its whole body, which may take minutes.
        buffer = Buffer.alloc(0)
        reject(new Failure('tooLarge'))
        return
      }
      buffer = enlarge(buffer, length, newLength, limit)
      piece.copy(buffer, length)
      length = newLength
    }

    payload.on('data', add)
    finished(payload, { writable: false }, (error) => {
      // If the connection was destroyed before `finished` was called, `error` may be undefined. Then the
      // stream has not ended, which the second condition detects.
      const isIncomplete = error || !payload.readableEnded
      if (isIncomplete) reject(new Failure('unreadable'))
      else resolve(buffer.subarray(0, length))
    })
  })
}

/**
 * Returns a buffer of at least `needed` bytes that begins with the first `length` bytes of `buffer`.
 * A new buffer has at least twice the size, up to `limit`, so that the body is not copied again for
 * each piece.
 */
function enlarge(buffer: Buffer, length: number, needed: number, limit: number) {
  if (needed <= buffer.length) return buffer
  const size = Math.min(limit, Math.max(needed, 2 * buffer.length))
  const larger = Buffer.allocUnsafe(size)
  buffer.copy(larger, 0, 0, length)
  return larger
}

/**
 * Returns an upper bound for the number of JSON values in `body`. If the bound is above MAX_VALUES,
 * returns any number above MAX_VALUES, because `count` stops early. Every value except the
 * outermost one comes after a comma, or is the first one of an array or an object.
 */
function estimateValues(body: Buffer) {
  return 1 + count(body, ',') + count(body, '[') + count(body, '{')
}

/** Returns how often `character` occurs in `body`, or MAX_VALUES + 1 if it occurs more often. */
function count(body: Buffer, character: string) {
  let found = 0
  let index = body.indexOf(character)
  while (index >= 0 && found <= MAX_VALUES) {
    found += 1
    index = body.indexOf(character, index + 1)
  }
  return found
}
