import { describe, expect, it } from 'vitest'
import { batchLookups } from '../src/database/batch.js'

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
})
