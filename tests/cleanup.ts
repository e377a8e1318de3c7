import type { RequestListener } from 'node:http'
import { listen } from '../src/dev/local.js'

const open: (() => unknown)[] = []

/**
 * Has something closed after the tests of the file, the last one opened first. Unlike `afterAll`
 * this may be called in a hook or a test, where vitest takes no further hooks and says nothing.
 */
export function closeAtEnd(close: () => unknown) {
  open.push(close)
}

export async function closeAll() {
  for (let close = open.pop(); close; close = open.pop()) await close()
}

/** Starts an HTTP server that ends after the tests of the file; gives its address. */
export async function serve(listener: RequestListener) {
  const { url, close } = await listen(listener)
  closeAtEnd(close)
  return url
}
