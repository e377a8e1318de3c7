import type { FastifyRequest } from 'fastify'
import { Failure } from '../answers/failures.js'

/** Returns the id of the user who has sent a request, or undefined if it needs no session. */
export type UserOf = (request: FastifyRequest) => number | undefined

/**
 * Returns a function that sets how many bytes of a request's body are counted. It throws the Failure
 * `busy` if all bodies would have more than `maxBytes`, or those of the user more than half of that.
 */
export function bodyMemory(maxBytes: number, userOf: UserOf) {
  const bytesByUser = new Map<number | undefined, number>()
  let bytesOfAll = 0

  return (request: FastifyRequest, bytes: number) => {
    const user = userOf(request)
    const more = bytes - (request.bodyBytes ?? 0)
    const bytesOfUser = (bytesByUser.get(user) ?? 0) + more
    const isTooMuch = bytesOfAll + more > maxBytes || bytesOfUser > maxBytes / 2
    if (isTooMuch) throw new Failure('busy')
    request.bodyBytes = bytes
    bytesOfAll += more
    if (bytesOfUser === 0) bytesByUser.delete(user)
    else bytesByUser.set(user, bytesOfUser)
  }
}
