import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fairShare } from './fair-share.js'
import { refuse } from './load.js'
import { whenAnswered } from './log.js'

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * All requests with the same `sharer` together get one share of the service's capacity. The
     * value contains the user's id and the version of the user's sessions, so requests with tokens
     * of ended sessions have a share of their own. A request with null is not limited in this way.
     */
    sharer: string | null
  }
}

/** How many requests of one user may wait for their turn. */
const MAX_WAITING = 64

/**
 * Lets at most `share` requests of one user (`request.sharer`) be in progress, so that no user can
 * occupy the whole service. Further requests of the user wait for their turns. If MAX_WAITING requests
 * are already waiting, another one is refused with the Failure `busy`.
 *
 * A turn ends when the answer has been sent. If the client disconnects before, the turn ends when the
 * handler has finished.
 */
export function takeTurns(app: FastifyInstance, share: number) {
  const turns = fairShare(share, MAX_WAITING)
  /** For each request that has its turn, the function that ends the turn. */
  const endings = new Map<FastifyRequest, () => void>()
  app.decorateRequest('sharer', null)

  app.addHook('onRequest', async (request) => {
    const { sharer, socket } = request
    if (sharer === null) return
    if (turns.isFull(sharer)) await refuse()
    endings.set(request, await turns.take(sharer, 1, socket))
  })

  app.addHook('onSend', (request, reply, _payload, done) => {
    const end = endings.get(request)
    endings.delete(request)
    if (end) whenAnswered(request, reply, end)
    done()
  })
}
