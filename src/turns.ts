/** Lets so many work at a time, first come, first served. */
export interface Turns {
  /** Calls `begin` when it is its turn. What comes back takes it out of the line. */
  join(begin: () => void): () => void
  /** Says that one who had a turn is done. */
  leave(): void
  /** Sets how many may work from now on: nobody while it is 0. */
  allow(limit: number): void
  running(): number
  waiting(): number
}

/** Turns for nobody yet, see `allow`. */
export function takeTurns(): Turns {
  const line = new Set<() => void>()
  let limit = 0
  let running = 0

  function advance() {
    for (const begin of line) {
      if (running >= limit) return
      line.delete(begin)
      running += 1
      begin()
    }
  }

  return {
    join: (begin) => {
      const own = () => begin()
      line.add(own)
      advance()
      return () => void line.delete(own)
    },
    leave: () => {
      running -= 1
      advance()
    },
    allow: (most) => {
      limit = most
      advance()
    },
    running: () => running,
    waiting: () => line.size,
  }
}
