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
