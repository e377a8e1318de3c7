import { setImmediate } from 'node:timers/promises'
import pLimit from 'p-limit'
import { DatabaseTimeout } from './sql.js'

/** The most time from a call to its answer, in milliseconds: as much as any statement has. */
const ANSWER_TIMEOUT = 4500

/**
 * Returns a function whose calls share statements: calls that come in at about the same time get the
 * answer of one `ask`, which sends one statement. At most `maxInFlight` statements are in flight, and
 * the calls that come in meanwhile share the next one.
 *
 * `ask` begins after each call that it answers, so the answer has everything that was committed before
 * the call. When `ask` rejects, all of its calls reject. A call that takes longer than ANSWER_TIMEOUT
 * rejects with a DatabaseTimeout.
 */
export function shareStatement<T>(ask: () => Promise<T>, maxInFlight: number): () => Promise<T> {
  const limit = pLimit(maxInFlight)
  let next: Promise<T> | undefined

  function begin() {
    return limit(async () => {
      // Further requests may have arrived in this turn of the event loop. Their calls come along.
      await setImmediate()
      next = undefined
      return ask()
    })
  }

  return () => {
    next ??= begin()
    return inTime(next)
  }
}

/** Throws a DatabaseTimeout when `answer` takes longer than ANSWER_TIMEOUT. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DatabaseTimeout()), ANSWER_TIMEOUT)
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}
