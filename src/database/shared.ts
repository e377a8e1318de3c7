import { setImmediate } from 'node:timers/promises'
import pLimit from 'p-limit'
import { ANSWER_TIMEOUT, DatabaseTimeout } from './sql.js'

/**
 * Returns a function that calls `query` once for all calls with equal arguments in the same turn of
 * the event loop. All of these calls get the same answer, or the same error.
 *
 * `query` is called when that turn has ended, and so after the last of these calls. So for each of
 * them, the answer contains everything that was committed before that call.
 *
 * Under load many calls are made in the same turn, because one statement looks up the sessions of
 * many requests (see shareLookups). When it has been answered, all of these requests continue in
 * the same turn.
 */
export function shareEqual<Argument, Answer>(
  query: (argument: Argument) => Promise<Answer>,
): (argument: Argument) => Promise<Answer> {
  /** The answers to the calls of this turn, by the argument as JSON. */
  const answers = new Map<string, Promise<Answer>>()

  async function begin(key: string, argument: Argument) {
    await setImmediate()
    answers.delete(key)
    return query(argument)
  }

  return (argument) => {
    const key = JSON.stringify([argument])
    const answer = answers.get(key) ?? begin(key, argument)
    answers.set(key, answer)
    return answer
  }
}

/**
 * Returns a function that answers one look-up. Several look-ups share one call of `find`, which
 * sends one statement and returns the answers in the order of the look-ups. At most `maxInFlight`
 * of these statements are in flight at a time. While that many are in flight, further look-ups are
 * collected for the next statement, which is sent when one of the others has been answered.
 *
 * `find` is called after the look-ups that it answers. So each answer contains everything that was
 * committed before its look-up. If `find` rejects, all of its look-ups reject with the same error.
 * If there is no answer ANSWER_TIMEOUT after the first of these look-ups, all of them reject with a
 * DatabaseTimeout.
 */
export function shareLookups<Lookup extends object, Found>(
  find: (lookups: Lookup[]) => Promise<Found[]>,
  maxInFlight: number,
): (lookup: Lookup) => Promise<Found | undefined> {
  const limit = pLimit(maxInFlight)
  /** The look-ups of the next statement. Equal look-ups have the same key and are sent once. */
  let collected = new Map<string, Lookup>()
  /** The answers of the next statement, by the keys of the look-ups. */
  let next: Promise<Map<string, Found | undefined>> | undefined

  async function findCollected() {
    // Wait for the other look-ups that arrive in the same turn of the event loop.
    await setImmediate()
    const lookups = collected
    collected = new Map()
    next = undefined
    const found = await find([...lookups.values()])

    const keys = [...lookups.keys()]
    return new Map(keys.map((key, index) => [key, found[index]]))
  }

  return async (lookup) => {
    const key = JSON.stringify(lookup)
    collected.set(key, lookup)
    next ??= inTime(limit(findCollected))
    const answers = await next
    return answers.get(key)
  }
}

/** Returns what `answer` resolves to. Throws a DatabaseTimeout after ANSWER_TIMEOUT. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DatabaseTimeout()), ANSWER_TIMEOUT)
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}
