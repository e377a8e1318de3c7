import { constants, PerformanceObserver } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
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

describe('the garbage', () => {
  let isCollected = false
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries() as unknown as { detail: { flags: number } }[]) {
      if (detail.flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) isCollected = true
    }
  })
  /** The share of its time that the event loop works, as far as it is told. */
  let utilization = 0
  let now = 0

  beforeEach(() => {
    utilization = 0.1
    now = 0
    vi.spyOn(performance, 'now').mockImplementation(() => now)
    observer.observe({ entryTypes: ['gc'] })
    vi.spyOn(performance, 'eventLoopUtilization').mockImplementation((before) => ({
      idle: 0,
      active: 0,
      utilization: before ? utilization : 1,
    }))
  })
  afterEach(() => {
    observer.disconnect()
    vi.restoreAllMocks()
  })

  /** Whether it is collected in the next milliseconds. */
  async function within(ms: number) {
    isCollected = false
    now += ms
    vi.advanceTimersByTime(ms)
    await setImmediate()
    await setImmediate()
    return isCollected
  }

  it('is collected once all has been given back for a second', async () => {
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
  })

  it('is left to lie where less than half has been lent since', async () => {
    const { ask } = borrower(10)
    for (const bytes of [4, 1, 4]) {
      const giveBack = await ask('a', bytes)
      giveBack()
      expect(await within(10_000)).toBe(bytes === 1)
    }
  })

  it('waits for a second in which there is little else to do, or for ten', async () => {
    const { ask } = borrower(10)
    const lend = async () => {
      const giveBack = await ask('a', 10)
      giveBack()
    }
    utilization = 0.11
    await lend()
    expect(await within(1000)).toBe(true)
    await lend()
    expect(await within(5500)).toBe(false)
    utilization = 0.1
    expect(await within(499)).toBe(false)
    expect(await within(1)).toBe(true)
    utilization = 0.11
    await lend()
    expect(await within(9999)).toBe(false)
    expect(await within(1001)).toBe(true)
    expect(await within(10_000)).toBe(false)
  })
})
