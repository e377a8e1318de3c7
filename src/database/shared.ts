import { setImmediate } from 'node:timers/promises'
import pLimit from 'p-limit'
import { DatabaseTimeout } from './sql.js'

/** The most time from a look-up to its answer, in milliseconds: as much as any statement has. */
const ANSWER_TIMEOUT = 4500

/**
 * Returns a function whose equal calls share a statement: calls with equal arguments that arrive in
 * the same turn of the event loop all get the answer of one `ask`, or its error.
 *
 * `ask` begins after each call that it answers, so the answer has everything that was committed before
 * the call. Under load many requests arrive in one turn, because those whose sessions were looked up
 * together go on together.
 */
export function shareEqual<Argument, Answer>(
  ask: (argument: Argument) => Promise<Answer>,
): (argument: Argument) => Promise<Answer> {
  /** The answers to the calls of this turn, by their argument. */
  const answers = new Map<string, Promise<Answer>>()

  async function begin(key: string, argument: Argument) {
    await setImmediate()
    answers.delete(key)
    return ask(argument)
  }

  return (argument) => {
    const key = JSON.stringify([argument])
    const answer = answers.get(key) ?? begin(key, argument)
    answers.set(key, answer)
    return answer
  }
}

/**
 * Returns a function that answers one look-up. Look-ups share the statement of `find`, which answers
 * a list of them, each at the place of its look-up. At most `maxInFlight` statements are in flight,
 * and the look-ups that arrive meanwhile share the next one.
 *
 * `find` begins after each look-up that it answers, so the answer has everything that was committed
 * before the look-up. When `find` rejects, all of its look-ups reject. They reject with a
 * DatabaseTimeout if the answer takes longer than ANSWER_TIMEOUT.
 */
export function shareLookups<Lookup extends object, Found>(
  find: (lookups: Lookup[]) => Promise<Found[]>,
  maxInFlight: number,
): (lookup: Lookup) => Promise<Found | undefined> {
  const limit = pLimit(maxInFlight)
  /** The look-ups of the next statement. Equal look-ups of several requests have the same key. */
  let asked = new Map<string, Lookup>()
  let next: Promise<Map<string, Found | undefined>> | undefined

  async function findAsked() {
    // Further requests may have arrived in this turn of the event loop. Their look-ups come along.
    await setImmediate()
    const lookups = asked
    asked = new Map()
    next = undefined
    const found = await find([...lookups.values()])
    const answers = new Map([...lookups.keys()].map((key, index) => [key, found[index]]))
    return answers
  }

  return async (lookup) => {
    const key = Object.values(lookup).join()
    asked.set(key, lookup)
    next ??= inTime(limit(findAsked))
    const answers = await next
    return answers.get(key)
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
