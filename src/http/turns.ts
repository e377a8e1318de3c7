import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fairShare } from './fair-share.js'
import { refuse } from './load.js'
import { onAnswered } from './log.js'

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The user on whose share of the service the request counts, as a number. Null when it counts on
     * nobody's share.
     */
    sharer: number | null
  }
}

/** How many requests of one user may wait for their turn. */
const MAX_WAITING = 64

/**
 * Works on at most `share` requests of one user (`request.sharer`) at a time, so that no user takes
 * the service from the others. Further requests wait for their turn; with MAX_WAITING of them, one
 * more is refused with the Failure `busy`. A turn ends when the work is done and the answer has been
 * sent or the client has gone.
 */
export function takeTurns(app: FastifyInstance, share: number) {
  const turns = fairShare(share, MAX_WAITING)
  const endings = new Map<FastifyRequest, () => void>()
  app.decorateRequest('sharer', null)

  app.addHook('onRequest', async (request) => {
    const { sharer, socket } = request
    if (sharer === null) return
    if (turns.isFull(sharer)) await refuse()
    endings.set(request, await turns.take(sharer, 1, socket))
  })

  onAnswered(app, (request) => {
    const end = endings.get(request)
    endings.delete(request)
    end?.()
  })
}
