import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import type { Pipeline } from '../request.js'

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
  /** Passes on the oldest request that waits, if it can still be answered. */
  function passOn(connection: Socket) {
    const { waiting } = connection.pipeline as Pipeline
    const [response] = waiting
    if (!response) return
    setImmediate(() => {
      waiting.shift()
      passOn(connection)
    })
    if (connection.writable) next(response.req, response)
  }

  return (request, response) => {
    const connection = request.socket
    connection.pipeline ??= { unanswered: [], waiting: [] }
    const { pipeline } = connection
    pipeline.unanswered.push(response)
    if (pipeline.unanswered.length > MAX_UNANSWERED) {
      // Otherwise Node would still make a response for each request that it has already read, and
      // pass it on.
      if (connection.parser) connection.parser.onIncoming = ignore
      connection.destroy()
      return
    }
    response.once('close', () => pipeline.unanswered.shift())
    if (pipeline.waiting.push(response) === 1) passOn(connection)
  }
}
