import { expect, it } from 'vitest'
import { gather } from '../src/auth/gather.js'
import { DatabaseSilence } from '../src/db.js'

const asked: number[][] = []
const answers: (() => void)[] = []
/** Answers n with 10 n, and nothing for 0, when told to. */
const find = gather(async (ids) => {
  asked.push(ids)
  await new Promise<void>((resolve) => answers.push(resolve))
  if (ids.includes(-2)) throw new DatabaseSilence()
  if (ids.includes(-1)) throw new Error('not asked that way')
  return new Map(ids.filter((id) => id !== 0).map((id) => [id, 10 * id]))
})
const turn = () => new Promise((resolve) => setTimeout(resolve, 5))

it('asks for the calls that came in meanwhile in one go, two goes at a time', async () => {
  const first = [find(1), find(2), find(1)]
  await turn()
  const second = find(3)
  await turn()
  const third = [find(4), find(0)]
  await turn()
  expect(asked).toEqual([[1, 2], [3]])
  answers[0]?.()
  expect(await Promise.all(first)).toEqual([10, 20, 10])
  await turn()
  expect(asked).toEqual([[1, 2], [3], [4, 0]])
  for (const answer of answers) answer()
  expect(await Promise.all([second, ...third])).toEqual([30, 40, undefined])
  await turn()
  expect(asked).toHaveLength(3)
})

it('fails the calls of a statement that fails, and no others', async () => {
  const failing = Promise.allSettled([find(-1), find(5)])
  await turn()
  const next = find(6)
  await turn()
  const last = find(7)
  await turn()
  expect(asked.slice(3)).toEqual([[-1, 5], [6]])
  for (const answer of answers) answer()
  expect((await failing).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await next).toBe(60)
  await turn()
  answers.at(-1)?.()
  expect(await last).toBe(70)
})

it('fails those that wait, too, where the database is silent', async () => {
  const before = asked.length
  const silent = Promise.allSettled([find(-2)])
  await turn()
  const other = find(8)
  await turn()
  const waiting = Promise.allSettled([find(9), find(10)])
  for (const answer of answers) answer()
  const ends = [...(await silent), ...(await waiting)]
  expect(ends).toEqual(Array(3).fill({ status: 'rejected', reason: expect.any(DatabaseSilence) }))
  expect(await other).toBe(80)
  await turn()
  expect(asked.slice(before)).toEqual([[-2], [8]])
})
