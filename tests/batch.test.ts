import { setImmediate } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { batchLookups } from '../src/database/batch.js'

/** How long a look-up may take, in milliseconds. */
const ANSWER_TIMEOUT = 4500

describe('batchLookups', () => {
  it('collects the look-ups that arrive while a statement is in flight, and then sends them in one statement', async () => {
    const statements: object[][] = []
    let answerFirst = () => {}
    const firstMayEnd = new Promise<void>((resolve) => {
      answerFirst = resolve
    })
    const find = batchLookups(async (lookups: { id: number }[]) => {
      statements.push(lookups)
      await firstMayEnd
      return lookups.map(({ id }) => (id === 0 ? undefined : { id }))
    }, 1)

    const first = find({ id: 1 })
    await expect.poll(() => statements.length).toBe(1)
    const others = Promise.all([find({ id: 2 }), find({ id: 0 }), find({ id: 2 })])
    answerFirst()
    expect(await first).toEqual({ id: 1 })
    expect(await others).toEqual([{ id: 2 }, undefined, { id: 2 }])
    expect(statements).toEqual([[{ id: 1 }], [{ id: 2 }, { id: 0 }, { id: 2 }]])
  })

  it('rejects a look-up that has no answer in time, also while its statement waits for another one', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const find = batchLookups(() => new Promise<object[]>(() => {}), 1)
    const inFlight = expect(find({})).rejects.toThrow('no answer in time')
    await setImmediate()
    const waiting = expect(find({})).rejects.toThrow('no answer in time')
    vi.advanceTimersByTime(ANSWER_TIMEOUT)
    await Promise.all([inFlight, waiting])
  })

  it('answers a look-up that joins others which have waited too long', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    let answerFirst = () => {}
    const firstMayEnd = new Promise<void>((resolve) => {
      answerFirst = resolve
    })
    const find = batchLookups(async (lookups: { id: number }[]) => {
      await firstMayEnd
      return lookups
    }, 1)

    const inFlight = expect(find({ id: 1 })).rejects.toThrow('no answer in time')
    await setImmediate()
    const waiting = expect(find({ id: 2 })).rejects.toThrow('no answer in time')
    vi.advanceTimersByTime(ANSWER_TIMEOUT)
    await Promise.all([inFlight, waiting])
    const joining = find({ id: 3 })
    answerFirst()
    expect(await joining).toEqual({ id: 3 })
  })
})
