import { busy } from './failure.js'
import { collectWhenQuiet } from './garbage.js'

/** Gives back what has been lent; more than once is as once. */
export type GiveBack = () => void

interface Waiting {
  bytes: number
  admit(): void
}

/** How long a caller waits for bytes, in milliseconds. */
const PATIENCE = 10_000

/**
 * Lends out `total` bytes of memory, first come, first served. The function that comes back waits
 * until as many as its argument are free, and throws the Failure `busy` when they are not in time;
 * more than `total` never are. Once all is given back for a while the garbage is collected, if at
 * least half of `total` has been lent since the last time.
 */
export function lendBytes(total: number) {
  let free = total
  const garbage = collectWhenQuiet(total / 2)
  const queue: Waiting[] = []

  function admit() {
    for (let next = queue[0]; next && next.bytes <= free; next = queue[0]) {
      queue.shift()
      free -= next.bytes
      garbage.make(next.bytes)
      next.admit()
    }
  }

  function waitFor(bytes: number) {
    return new Promise<void>((resolve, reject) => {
      const waiting: Waiting = {
        bytes,
        admit: () => {
          clearTimeout(timer)
          resolve()
        },
      }
      const timer = setTimeout(() => {
        queue.splice(queue.indexOf(waiting), 1)
        // It may have been in the way of smaller ones.
        admit()
        reject(busy())
      }, PATIENCE)
      queue.push(waiting)
      admit()
    })
  }

  return async (bytes: number): Promise<GiveBack> => {
    await waitFor(bytes)
    let lent = bytes
    return () => {
      if (lent > 0 && free + lent === total) garbage.rest()
      free += lent
      lent = 0
      admit()
    }
  }
}
