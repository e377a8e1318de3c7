import type { RequestListener } from 'node:http'

/** How many requests of one connection may wait for their answers. */
const MAX_UNANSWERED = 16

/**
 * Returns a listener that passes requests on to `next`. It closes a connection on which more than
 * MAX_UNANSWERED requests wait for their answers. A client may send requests without waiting for
 * the answers (HTTP pipelining). The 64 KB that Node reads at a time have room for 2,000 requests.
 */
export function limitPipelining(next: RequestListener): RequestListener {
  return (request, response) => {
    const connection = request.socket
    connection.unanswered ??= []
    const { unanswered } = connection
    if (unanswered.push(response) > MAX_UNANSWERED) {
      // Otherwise Node would still pass on each request that it has already read from the connection.
      if (connection.parser) connection.parser.onIncoming = () => 0
      connection.destroy()
      return
    }
    response.once('close', () => unanswered.shift())
    next(request, response)
  }
}
