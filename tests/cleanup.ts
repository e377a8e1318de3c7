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

/** Starts an HTTP server that ends after the tests of the file; returns its URL. */
export async function serve(listener: RequestListener) {
  const { url, close } = await listen(listener)
  closeAtEnd(close)
  return url
}
