import type { FastifyInstance, FastifyRequest } from 'fastify'
import { BODY_LIMIT } from './bodies.js'
import { Failure } from './failures.js'
import { fairShare } from './fair-share.js'

/**
 * How many bytes all large bodies may have together while they are read and handled. Each of them takes
 * several times its size in memory. The limit is higher if two bodies of the size `largestBody` need
 * more.
 */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * Bounds the memory for bodies above BODY_LIMIT. The bytes of such a body count towards MAX_BYTES from
 * before the body is read until the request is answered. A body that does not fit is refused with the
 * Failure `busy`. The bodies of one user (`request.sharer`, see turns.ts) may take half of the bytes.
 * Further bodies of the same user wait. `largestBody` is the largest `bodyLimit` of all routes, in
 * bytes.
 */
export function limitLargeBodies(app: FastifyInstance, largestBody: number) {
  const maxBytes = Math.max(MAX_BYTES, 2 * largestBody)
  const shares = fairShare(maxBytes / 2)
  /** For each request with a large body, the function that gives its bytes back. */
  const taken = new Map<FastifyRequest, () => void>()
  let bytesTaken = 0

  async function take({ sharer, socket }: FastifyRequest, bytes: number) {
    // Requests that count for no user share the key 0, which is nobody's id.
    const giveBack = await shares.take(sharer ?? 0, bytes, socket)
    if (bytesTaken + bytes > maxBytes) {
      giveBack()
      throw new Failure('busy')
    }
    bytesTaken += bytes
    return () => {
      bytesTaken -= bytes
      giveBack()
    }
  }

  app.addHook('preParsing', async (request) => {
    const bytes = announcedBytes(request)
    const isSmall = bytes <= BODY_LIMIT
    // bodies.ts refuses such a body without reading it.
    const isTooLarge = bytes > request.routeOptions.bodyLimit
    if (isSmall || isTooLarge) return
    taken.set(request, await take(request, bytes))
  })

  app.addHook('onSend', (request, _reply, _payload, done) => {
    taken.get(request)?.()
    taken.delete(request)
    done()
  })
}

/** Returns the size of the body in bytes, or the route's limit if the body is chunked. */
function announcedBytes({ headers, routeOptions }: FastifyRequest) {
  const isChunked = headers['transfer-encoding'] !== undefined
  if (isChunked) return routeOptions.bodyLimit
  return Number(headers['content-length'] ?? 0)
}
