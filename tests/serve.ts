import type { RequestListener } from 'node:http'
import { listen } from '../src/dev/listen.js'
import { closeAtEnd } from './cleanup.js'

/**
 * Starts an HTTP server that ends after the tests of the file; returns its URL. If the listener
 * fails, for example because the client has gone, the server closes the connection.
 */
export async function serve(listener: RequestListener) {
  const { url, close } = await listen(async (request, response) => {
    try {
      await listener(request, response)
    } catch {
      request.destroy()
    }
  })
  closeAtEnd(close)
  return url
}

/** Returns a listener that gives every request this answer. */
export const says =
  (status: number, body: string): RequestListener =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  }
