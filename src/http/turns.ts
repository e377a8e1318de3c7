import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fairShare } from './fair-share.js'
import { refuse } from './limits.js'
import { onAnswered } from './log.js'

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Whose share of the service the request takes: requests with the same number take it from each
     * other. Null where no share is counted.
     */
    sharer: number | null
  }
}

/** Requests of one sharer that may wait for their turn. */
const MAX_WAITING = 64

/**
 * Works on `share` requests of one sharer at a time; further ones wait for their turn. The turn of a
 * request lasts until its work is done and its answer is out or its client has gone. Throws the
 * Failure `busy` where too many wait already.
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
