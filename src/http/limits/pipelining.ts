import type { RequestListener } from 'node:http'

/** How many requests of one connection may wait for their answers. */
const MAX_UNANSWERED = 16

/**
 * Drops a request. On a connection that limitPipelining closes, it takes the place of the function that
 * Node calls for the head of each request. If a request with the header `Upgrade` kept its `upgrade`,
 * Node would hand over the connection, and Node 24 would then not abort the requests in flight. The
 * result 0 makes the parser go on as usual.
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
    connection.line ??= { unanswered: [], bytesRead: 0, readTogether: 0 }
    const { line } = connection
    if (line.bytesRead !== connection.bytesRead) {
      line.bytesRead = connection.bytesRead
      line.readTogether = 0
    }
    // When Node read these requests, all of them waited for their answers, even if some have been
    // answered since.
    line.readTogether += 1
    line.unanswered.push(response)
    if (Math.max(line.readTogether, line.unanswered.length) > MAX_UNANSWERED) {
      // Otherwise Node would still make a response for each request that it has already read, and pass
      // it on.
      if (connection.parser) connection.parser.onIncoming = ignore
      connection.destroy()
      return
    }
    response.once('close', () => line.unanswered.shift())
    next(request, response)
  }
}
