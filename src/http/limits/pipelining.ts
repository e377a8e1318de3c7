import type { RequestListener, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'

/** How many requests of one connection may wait for their answers. */
const MAX_UNANSWERED = 16

/**
 * Drops a request. When limitPipelining has closed a connection, this function takes the place of
 * the parser's `onIncoming`, and gets the head of each further request that Node has already read.
 * It clears `upgrade`, which is true for a request with the header `Upgrade`. Otherwise Node would
 * hand over the connection, and Node 24 would not abort the requests in flight. The result 0 makes
 * the parser go on.
 */
function ignore(request: { upgrade: boolean }) {
  request.upgrade = false
  return 0
}

/**
 * Returns a listener that passes requests on to `next`. A client may send requests without waiting
 * for the answers (HTTP pipelining), and the 64 KB that Node reads at a time have room for 2,000 of
 * them. Node may even read a connection many times before it turns to the others. So after each
 * request, Node goes through the other connections before the next request is passed on. If more
 * than MAX_UNANSWERED requests wait for their answers, the connection is closed.
 */
export function limitPipelining(next: RequestListener): RequestListener {
  /**
   * Passes on a request when its turn has come, if it can still be answered. Resolves when it is
   * the turn of the next request.
   */
  async function passOn(turn: Promise<void> | undefined, response: ServerResponse) {
    await turn
    const { req } = response
    if (req.socket.writable) next(req, response)
    await setImmediate()
  }

  return ({ socket }, response) => {
    socket.unanswered ??= []
    const { unanswered } = socket
    if (unanswered.push(response) > MAX_UNANSWERED) {
      // Otherwise Node would still make a response for each request that it has already read, and
      // pass it on.
      if (socket.parser) socket.parser.onIncoming = ignore
      socket.destroy()
      return
    }
    response.once('close', () => unanswered.shift())
    socket.turn = passOn(socket.turn, response)
  }
}
