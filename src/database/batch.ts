import { setImmediate } from 'node:timers/promises'
import fastq from 'fastq'
import { withTimeout } from './sql.js'

/**
 * How many statements may be in flight. With more of them, fewer look-ups share a statement, and
 * each request costs more. With only one, a connection that hangs would hold up all requests.
 */
const MAX_IN_FLIGHT = 2

/**
 * Returns a function that answers one look-up. Several look-ups share one call of `find`, which
 * sends one statement and returns the answers in the order of the look-ups. While MAX_IN_FLIGHT
 * statements are in flight, further look-ups are collected for the next one, which is sent when one
 * of the others has been answered.
 *
 * The statement is sent after its look-ups have arrived, so each of them sees everything that was
 * committed before it arrived. All look-ups of a statement fail together if `find` rejects. A
 * look-up also fails if it has no answer within ANSWER_TIMEOUT.
 */
export function batchLookups<Lookup, Found>(find: (lookups: Lookup[]) => Promise<Found[]>) {
  /** Limits how many statements are in flight. Its tasks have no values. */
  const queue = fastq.promise(sendWaiting, MAX_IN_FLIGHT)
  /** The look-ups of the next statement. */
  let waiting: Lookup[] = []
  /** The answers of the next statement, in the order of the look-ups. */
  let answers: Promise<Found[]> | undefined

  async function sendWaiting() {
    // Wait for the other look-ups that arrive in the same turn of the event loop.
    await setImmediate()
    const lookups = waiting
    waiting = []
    answers = undefined
    return find(lookups)
  }

  return async (lookup: Lookup) => {
    const index = waiting.push(lookup) - 1
    // The first look-up queues the statement. Those that follow share its answers.
    answers ??= queue.push(undefined)
    const found = await withTimeout(answers)
    return found[index]
  }
}
