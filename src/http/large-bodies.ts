import type { FastifyInstance, FastifyRequest } from 'fastify'
import { BODY_LIMIT } from './bodies.js'
import { Failure } from './failures.js'
import { fairShare } from './fair-share.js'

/**
 * How many bytes all large bodies may have together while they are read and handled. Each of them takes
 * several times its size in memory. If two bodies of the largest size have more bytes than this, their
 * sum is the limit instead.
 */
const MAX_BYTES = 64 * 1024 * 1024

declare module 'fastify' {
  interface FastifyRequest {
    /** Gives the bytes of the request's large body back. Null if the request has taken none. */
    giveBytesBack: (() => void) | null
  }
}

/**
 * Bounds the memory for bodies above BODY_LIMIT. The bytes of such a body count towards MAX_BYTES from
 * before the body is read until the answer is ready. The bodies of one user  may take half of the bytes, and further bodies of the same user wait. A body for which the
 * other users leave too few bytes is refused with the Failure `busy`. `largestBody` is the largest
 * `bodyLimit` of all routes, in bytes.
 */
export function limitLargeBodies(app: FastifyInstance, largestBody: number) {
  const maxBytes = Math.max(MAX_BYTES, 2 * largestBody)
  const shares = fairShare(maxBytes / 2)
  let bytesTaken = 0
  app.decorateRequest('giveBytesBack', null)

  async function take({ caller, socket }: FastifyRequest, bytes: number) {
    // Every route that accepts a large body needs a session.
    const giveBack = await shares.take(String(caller.id), bytes, socket)
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
    // bodies.ts refuses a body that is too large without reading it.
    const isTooLarge = bytes > request.routeOptions.bodyLimit
    if (isSmall || isTooLarge) return
    request.giveBytesBack = await take(request, bytes)
  })

  app.addHook('onSend', (request, _reply, _payload, done) => {
    request.giveBytesBack?.()
    request.giveBytesBack = null
    done()
  })
}

/**
 * Returns the size of the body in bytes. A chunked body does not announce its size. So the limit of the
 * route is returned for it.
 */
function announcedBytes({ headers, routeOptions }: FastifyRequest) {
  const isChunked = headers['transfer-encoding'] !== undefined
  if (isChunked) return routeOptions.bodyLimit
  return Number(headers['content-length'] ?? 0)
}
