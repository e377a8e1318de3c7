/** How many statements of one key may wait. */
const MAX_WAITING = 64

/** The statements of one key: the number of those in flight, and those that wait, oldest first. */
interface Line<Statement> {
  readonly key: string | null
  running: number
  readonly waiting: Statement[]
}

/**
 * Returns the queue of the statements that wait for a connection. The keys take turns. A key has at
 * most `share` statements in flight. These two limits do not hold for the key null.
 *
 * The lines are in an array because a Map would slow down the garbage collector
 * (docs/architecture.md, "Tried and rejected").
 */
export function createQueue<Statement extends { key: string | null }>(share: number) {
  /** The keys that have statements. The next turn belongs to the first one that may have it. */
  const lines: Line<Statement>[] = []

  function findLine(key: string | null) {
    return lines.find((line) => line.key === key)
  }

  /** Moves the line to the end, or removes it if it has no statements. */
  function endTurn(line: Line<Statement>) {
    lines.splice(lines.indexOf(line), 1)
    if (line.running + line.waiting.length > 0) lines.push(line)
  }

  function isNext({ key, running, waiting }: Line<Statement>) {
    return waiting.length > 0 && (key === null || running < share)
  }

  return {
    /** Returns whether a statement waits that may be sent now. */
    hasNext: () => lines.some(isNext),

    /** Adds a statement. Returns false if too many statements of its key wait already. */
    add(statement: Statement) {
      const { key } = statement
      const line = findLine(key) ?? { key, running: 0, waiting: [] }
      if (key !== null && line.waiting.length >= MAX_WAITING) return false
      line.waiting.push(statement)
      if (!lines.includes(line)) lines.push(line)
      return true
    },

    /** Removes and returns the statement that is to be sent next, which counts as in flight then. */
    take(): Statement | undefined {
      const line = lines.find(isNext)
      const statement = line?.waiting.shift()
      if (line && statement) {
        line.running += 1
        endTurn(line)
      }
      return statement
    },

    /** Removes a statement that still waits. Returns false if it does not wait any more. */
    remove(statement: Statement) {
      const line = findLine(statement.key)
      const index = line?.waiting.indexOf(statement) ?? -1
      if (!line || index < 0) return false
      line.waiting.splice(index, 1)
      endTurn(line)
      return true
    },

    /** Must be called when a statement that was taken is in flight no longer. */
    finish(statement: Statement) {
      const line = findLine(statement.key)
      if (!line) return
      line.running -= 1
      if (line.running + line.waiting.length === 0) endTurn(line)
    },

    /** Returns the statements that wait. */
    waiting: () => lines.flatMap(({ waiting }) => waiting),
  }
}
