import type { FastifyRequest } from 'fastify'
import { Failure } from '../answers/failures.js'

/**
 * Returns a function that sets how many bytes of a request's body are counted. It throws the
 * Failure `busy` if all bodies would have more than `maxBytes`, or those of the user more than half
 * of that.
 */
export function bodyMemory(maxBytes: number) {
  // An entry stays when it is 0 again, so there is at most one for each user.
  const bytesByUser = new Map<number | undefined, number>()
  let bytesOfAll = 0

  return (request: FastifyRequest, bytes: number) => {
    const user = request.userId
    const more = bytes - (request.bodyBytes ?? 0)
    const bytesOfUser = (bytesByUser.get(user) ?? 0) + more
    const isTooMuch = bytesOfAll + more > maxBytes || bytesOfUser > maxBytes / 2
    if (isTooMuch) throw new Failure('busy')
    request.bodyBytes = bytes
    bytesOfAll += more
    bytesByUser.set(user, bytesOfUser)
  }
}
