import { setImmediate } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { batchLookups } from '../src/database/batch.js'

/** How long a look-up may take, in milliseconds. */
const ANSWER_TIMEOUT = 4500

interface Lookup {
  id: number
}

/**
 * Returns a function that looks an id up and finds none for 0, and the look-ups of each statement
 * that it has sent. The statements are answered only after `answer` has been called.
 */
function startLookups() {
  const statements: Lookup[][] = []
  let answer = () => {}
  const mayEnd = new Promise<void>((resolve) => {
    answer = resolve
  })
  const find = batchLookups(async (lookups: Lookup[]) => {
    statements.push(lookups)
    await mayEnd
    return lookups.map((lookup) => (lookup.id === 0 ? undefined : lookup))
  })
  return { find, statements, answer }
}

it('look-ups that arrive while two statements are in flight are sent in one statement, and each gets its own answer', async () => {
  const { find, statements, answer } = startLookups()
  const first = find({ id: 1 })
  await expect.poll(() => statements.length).toBe(1)
  const second = find({ id: 4 })
  await expect.poll(() => statements.length).toBe(2)
  const others: Promise<Lookup | undefined>[] = []
  for (const id of [2, 0, 2]) {
    others.push(find({ id }))
    await setImmediate()
  }
  answer()
  expect(await Promise.all([first, second])).toEqual([{ id: 1 }, { id: 4 }])
  expect(await Promise.all(others)).toEqual([{ id: 2 }, undefined, { id: 2 }])
  expect(statements).toEqual([[{ id: 1 }], [{ id: 4 }], [{ id: 2 }, { id: 0 }, { id: 2 }]])
})

it('a look-up without an answer in time is rejected, also while its statement waits for the others, and one that joins it later is answered', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { find, answer } = startLookups()
  const unanswered: Promise<void>[] = []
  // The first two statements are in flight, and the third one waits.
  for (const id of [1, 2, 3]) {
    unanswered.push(expect(find({ id })).rejects.toThrow('no answer in time'))
    await setImmediate()
  }
  vi.advanceTimersByTime(ANSWER_TIMEOUT)
  await Promise.all(unanswered)
  const joining = find({ id: 4 })
  answer()
  expect(await joining).toEqual({ id: 4 })
})
