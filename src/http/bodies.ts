import { finished, type Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Failure } from './failures.js'

/** The largest body of a route that declares no `bodyLimit` of its own, in bytes. */
export const BODY_LIMIT = 64 * 1024

/** A body above this size, in bytes, may have at most MAX_VALUES JSON values. */
const FREE_SIZE = 1024 * 1024
const MAX_VALUES = 1000

/**
 * Makes the application read JSON bodies and refuse all other types. An empty body counts as none.
 * Throws the Failures `tooLarge` for more bytes than the `bodyLimit` of the route, or for more than
 * MAX_VALUES values in a body above FREE_SIZE; `noJson` for malformed JSON; and `unreadable` when the
 * client goes before it has sent the whole body.
 */
export function parseJsonBodies(app: FastifyInstance) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', parseBody)
}

async function parseBody({ headers, routeOptions }: FastifyRequest, payload: Readable) {
  const { bodyLimit } = routeOptions
  if (Number(headers['content-length']) > bodyLimit) throw new Failure('tooLarge')
  const body = await readBody(payload, bodyLimit)
  if (body.length === 0) return undefined
  // A large body of many small values keeps the parser busy for seconds; one of long texts does not.
  const hasManyValues = body.length > FREE_SIZE && mostValues(body) > MAX_VALUES
  if (hasManyValues) throw new Failure('tooLarge')
  try {
    return JSON.parse(body.toString())
  } catch {
    // The parser's own message quotes the body.
    throw new Failure('noJson')
  }
}

/**
 * Returns all bytes of `payload`. Every piece is copied into one buffer when it arrives: a client may
 * send single bytes, and each would take about 400 bytes of memory if it were kept.
 */
function readBody(payload: Readable, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let buffer: Buffer = Buffer.alloc(0)
    let length = 0

    function add(piece: Buffer) {
      if (length + piece.length > limit) {
        payload.off('data', add)
        reject(new Failure('tooLarge'))
        return
      }
      buffer = withRoom(buffer, length, length + piece.length, limit)
      piece.copy(buffer, length)
      length += piece.length
    }

    payload.on('data', add)
    finished(payload, { writable: false }, (error) => {
      // A connection that was destroyed before this call is no error here.
      if (error || !payload.readableEnded) reject(new Failure('unreadable'))
      else resolve(buffer.subarray(0, length))
    })
  })
}

/**
 * Returns a buffer of at least `needed` bytes that begins with the first `length` bytes of `buffer`.
 * The size at least doubles, up to `limit`: enlarging for each piece would copy the body each time.
 */
function withRoom(buffer: Buffer, length: number, needed: number, limit: number) {
  if (needed <= buffer.length) return buffer
  const size = Math.min(limit, Math.max(needed, 2 * buffer.length))
  const larger = Buffer.allocUnsafe(size)
  buffer.copy(larger, 0, 0, length)
  return larger
}

/**
 * The number of JSON values that `body` has at most. Every value but the outermost one follows a
 * comma, or begins an array or an object.
 */
function mostValues(body: Buffer) {
  return 1 + count(body, ',') + count(body, '[') + count(body, '{')
}

/** How often `body` has the character. Stops counting above MAX_VALUES. */
function count(body: Buffer, character: string) {
  let found = 0
  let index = body.indexOf(character)
  while (index >= 0 && found <= MAX_VALUES) {
    found += 1
    index = body.indexOf(character, index + 1)
  }
  return found
}
