import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'

/** How many requests of one connection may wait for their answers. */
const MAX_UNANSWERED = 16

/** A connection, and how many of its requests have not been answered. */
type Connection = Socket & { unanswered: number }

/**
 * Returns a listener that passes requests on to `next`. It closes a connection on which more than
 * MAX_UNANSWERED requests wait for their answers. A client may send requests without waiting for
 * the answers (HTTP pipelining), and 64 KB have room for 2,000 requests.
 */
export function limitPipelining(next: RequestListener): RequestListener {
  return (request, response) => {
    const connection = request.socket as Connection
    connection.unanswered ??= 0
    connection.unanswered += 1
    if (connection.unanswered > MAX_UNANSWERED) {
      connection.destroy()
      return
    }
    response.once('close', () => {
      connection.unanswered -= 1
    })
    next(request, response)
  }
}
