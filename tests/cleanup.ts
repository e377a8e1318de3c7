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
