import type { FastifyInstance, FastifyRequest } from 'fastify'
import { BODY_LIMIT } from './bodies.js'
import { Failure } from './failures.js'
import { fairShare } from './fair-share.js'

/**
 * How many bytes all large bodies may have together, unless `largestBody` needs more. While a body is
 * read, parsed and worked on, it takes about four times its size of memory.
 */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * Bounds the memory for bodies above BODY_LIMIT. From before a body is read until the request is
 * answered, its bytes count towards MAX_BYTES; a body that does not fit is refused with the Failure
 * `busy`. The bodies of one user (`request.sharer`, see turns.ts) take at most half of the bytes, and
 * further ones of the same user wait. `largestBody` is the largest `bodyLimit` of all routes, in bytes.
 */
export function limitLargeBodies(app: FastifyInstance, largestBody: number) {
  const maxBytes = Math.max(MAX_BYTES, 2 * largestBody)
  const shares = fairShare(maxBytes / 2)
  /** The functions that give back the bytes of large bodies, by their requests. */
  const taken = new Map<FastifyRequest, () => void>()
  let bytesTaken = 0

  async function take({ sharer, socket }: FastifyRequest, bytes: number) {
    // Requests without a user share one account.
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
    // A body above the route's limit is refused without being read.
    if (bytes <= BODY_LIMIT || bytes > request.routeOptions.bodyLimit) return
    taken.set(request, await take(request, bytes))
  })

  app.addHook('onSend', async (request) => {
    taken.get(request)?.()
    taken.delete(request)
  })
}

/** The size of a request's body in bytes; for a chunked body the most that its route accepts. */
function announcedBytes({ headers, routeOptions }: FastifyRequest) {
  if (headers['transfer-encoding'] !== undefined) return routeOptions.bodyLimit
  return Number(headers['content-length'] ?? 0)
}
