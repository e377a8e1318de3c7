import type { RequestListener } from 'node:http'

/** How many requests of one connection may wait for their answers. */
const MAX_UNANSWERED = 16

/**
 * Takes the place of the function that Node calls with the head of each request. If `upgrade` stayed
 * true, as with the header `Upgrade`, Node would stop reading requests and hand over the connection.
 * The result 0 lets Node go on with the body.
 */
function ignore(request: { upgrade: boolean }) {
  request.upgrade = false
  return 0
}

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
      // Otherwise Node would still pass on each request that it has read from the connection already,
      // with an object for the request and one for the response.
      if (connection.parser) connection.parser.onIncoming = ignore
      connection.destroy()
      return
    }
    // Node may answer a request while it still reads further ones. So a response leaves the line only when
    // this turn of the event loop has ended.
    response.once('close', () => setImmediate(() => unanswered.shift()))
    next(request, response)
  }
}
