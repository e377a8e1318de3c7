import { describe, expect, it } from 'vitest'
import { shareEqual, shareLookups } from '../src/database/shared.js'

describe('shareEqual', () => {
  interface Filter {
    page?: number
    search?: string
  }

  /** Returns a query `ask`, and the arguments of its calls so far. */
  function countingAsk() {
    const calls: Filter[] = []
    return {
      calls,
      ask: async (argument: Filter) => {
        calls.push(argument)
        return argument
      },
    }
  }

  it('sends one statement for the equal calls of one turn of the event loop', async () => {
    const { calls, ask } = countingAsk()
    const shared = shareEqual(ask)
    const answers = await Promise.all([
      shared({ page: 1 }),
      shared({ page: 2 }),
      shared({ page: 1 }),
      shared({ page: 1, search: '1' }),
    ])
    expect(calls).toEqual([{ page: 1 }, { page: 2 }, { page: 1, search: '1' }])
    expect(answers.map(({ page }) => page)).toEqual([1, 2, 1, 1])
  })

  it('sends another statement for an equal call that comes after the first was sent', async () => {
    const { calls, ask } = countingAsk()
    const shared = shareEqual(ask)
    const first = shared({ page: 1 })
    await expect.poll(() => calls.length).toBe(1)
    await Promise.all([first, shared({ page: 1 })])
    expect(calls).toEqual([{ page: 1 }, { page: 1 }])
  })

  it('rejects all calls of a statement that fails, and sends another one for the next call', async () => {
    let calls = 0
    const shared = shareEqual(async () => {
      calls += 1
      if (calls === 1) throw new Error('lost')
      return calls
    })
    const failed = await Promise.allSettled([shared(1), shared(1)])
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await shared(1)).toBe(2)
  })
})

describe('shareLookups', () => {
  it('collects the look-ups that arrive while a statement is in flight, and then sends them in one statement', async () => {
    const statements: object[][] = []
    let answerFirst = () => {}
    const firstMayEnd = new Promise<void>((resolve) => {
      answerFirst = resolve
    })
    const find = shareLookups(async (lookups: { id: number }[]) => {
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
    expect(statements).toEqual([[{ id: 1 }], [{ id: 2 }, { id: 0 }]])
  })
})
