/** The statements of one key: the number of those in flight, and those that wait, oldest first. */
export interface Line<Statement> {
  readonly key: number | null
  running: number
  waiting: Statement[]
}

/**
 * Returns the queue of the statements that wait for a connection. The keys take turns. At most
 * `share` statements of one key are in flight. This limit does not hold for the key null.
 *
 * The lines are in an array because a Map would slow down the garbage collector
 * (docs/architecture.md, "Tried and rejected").
 */
export function createQueue<Statement>(share: number) {
  /** The next turn belongs to the first line that may have it. */
  let lines: Line<Statement>[] = []

  function isNext({ key, running, waiting }: Line<Statement>) {
    return waiting.length > 0 && (key === null || running < share)
  }

  return {
    /** Returns the line of a key. */
    lineOf(key: number | null): Line<Statement> {
      const known = lines.find((line) => line.key === key)
      if (known) return known
      const line = { key, running: 0, waiting: [] }
      const used = lines.filter(({ running, waiting }) => running + waiting.length > 0)
      lines = [...used, line]
      return line
    },

    /** Returns whether a statement waits that may be sent now. */
    hasNext: () => lines.some(isNext),

    /** Removes and returns the statement that is to be sent next. */
    take(): Statement | undefined {
      const index = lines.findIndex(isNext)
      const [line] = lines.splice(index, index < 0 ? 0 : 1)
      if (line) lines.push(line)
      return line?.waiting.shift()
    },

    /** Returns the statements that wait. */
    waiting: () => lines.flatMap(({ waiting }) => waiting),
  }
}
