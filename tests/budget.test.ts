import { constants, PerformanceObserver } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { lendBytes } from '../src/budget.js'
import { Failure } from '../src/failure.js'

const BUSY = new Failure('busy', 'Servicio ocupado. Intente de nuevo más tarde.')

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Asks for bytes; tells when they are there, or what came instead, under the name given. */
function borrower(total: number) {
  const borrow = lendBytes(total)
  const events: string[] = []
  const ask = (name: string, bytes: number) => {
    const asked = borrow(bytes)
    asked.then(
      () => events.push(name),
      (error) => events.push(`${name}: ${error.code}`),
    )
    return asked
  }
  return { ask, events }
}

it('lends as much as there is at once, and no more', async () => {
  const { ask, events } = borrower(10)
  await Promise.all([ask('a', 4), ask('b', 6)])
  ask('c', 1)
  await setImmediate()
  expect(events).toEqual(['a', 'b'])
})

it('lends to whoever came first, even if there is enough for another', async () => {
  const { ask, events } = borrower(10)
  const giveBackA = await ask('a', 6)
  const giveBackB = await ask('b', 2)
  ask('c', 8)
  ask('d', 1)
  giveBackB()
  await setImmediate()
  expect(events).toEqual(['a', 'b'])
  giveBackA()
  await setImmediate()
  expect(events).toEqual(['a', 'b', 'c', 'd'])
})

it('takes back once what is given back twice', async () => {
  const { ask, events } = borrower(10)
  const giveBack = await ask('a', 5)
  await ask('b', 5)
  giveBack()
  giveBack()
  ask('c', 5)
  ask('d', 1)
  await setImmediate()
  expect(events).toEqual(['a', 'b', 'c'])
})

it('is busy for whoever has waited for 10 s, and for nobody else', async () => {
  const { ask, events } = borrower(10)
  await ask('a', 9)
  const late = ask('b', 2)
  vi.advanceTimersByTime(1)
  ask('c', 1)
  ask('d', 1)
  vi.advanceTimersByTime(9998)
  await setImmediate()
  expect(events).toEqual(['a'])
  vi.advanceTimersByTime(1)
  await expect(late).rejects.toEqual(BUSY)
  // What it asked for was in the way.
  await setImmediate()
  expect(events).toEqual(['a', 'c', 'b: busy'])
  vi.advanceTimersByTime(10_000)
  await setImmediate()
  expect(events).toEqual(['a', 'c', 'b: busy', 'd: busy'])
})

it('collects the garbage once all has been given back for a second', async () => {
  let isCollected = false
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries() as unknown as { detail: { flags: number } }[]) {
      if (detail.flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) isCollected = true
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  /** Whether the garbage is collected in the next milliseconds. */
  const within = async (ms: number) => {
    isCollected = false
    vi.advanceTimersByTime(ms)
    await setImmediate()
    await setImmediate()
    return isCollected
  }

  const { ask } = borrower(10)
  const giveBack = await ask('a', 5)
  const giveBackOther = await ask('b', 5)
  giveBack()
  expect(await within(2000)).toBe(false)
  giveBackOther()
  expect(await within(999)).toBe(false)
  // Lent again before its time.
  const giveBackLast = await ask('c', 1)
  expect(await within(2000)).toBe(false)
  giveBackLast()
  expect(await within(1000)).toBe(true)
  giveBackLast()
  expect(await within(10_000)).toBe(false)
  observer.disconnect()
})
