import type { RequestListener } from 'node:http'
import { listen } from '../src/dev/local.js'

const open: (() => unknown)[] = []

/**
 * Registers a function to be called after the tests of the file, in reverse order. Unlike
 * `afterAll`, it works in a hook or a test, where vitest silently ignores further hooks.
 */
export function closeAtEnd(close: () => unknown) {
  open.push(close)
}

export async function closeAll() {
  for (let close = open.pop(); close; close = open.pop()) await close()
}

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
