import type { FastifyInstance } from 'fastify'
import { fairShare } from './fair-share.js'
import { refuse } from './load.js'
import { whenAnswered } from './log.js'

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * All requests with the same `sharer` together get one share of the service's capacity. The
     * value contains the user's id and the version of the user's sessions, so requests with tokens
     * of ended sessions have a share of their own. A request with null takes no turn.
     */
    sharer: string | null
    /** Ends the turn of the request. Null if the request has no turn. */
    endTurn: (() => void) | null
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
  app.decorateRequest('sharer', null)
  app.decorateRequest('endTurn', null)

  app.addHook('onRequest', async (request) => {
    const { sharer, socket } = request
    if (sharer === null) return
    if (turns.isFull(sharer)) await refuse()
    request.endTurn = await turns.take(sharer, 1, socket)
  })

  app.addHook('onSend', (request, reply, _payload, done) => {
    const { endTurn } = request
    request.endTurn = null
    if (endTurn) whenAnswered(request, reply, endTurn)
    done()
  })
}
