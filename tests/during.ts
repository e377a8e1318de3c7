import { setTimeout as sleep } from 'node:timers/promises'

/** Calls `ask` again 20 ms after each result, until `others` settles; returns all results. */
export async function during<T>(others: Promise<unknown>, ask: () => Promise<T>): Promise<T[]> {
  const answers: T[] = []
  let isOver = false
  const over = others.finally(() => {
    isOver = true
  })
  // A failure while `ask` is pending is thrown at the end, and is no unhandled rejection until
  // then.
  over.catch(() => {})
  while (!isOver) {
    answers.push(await ask())
    await sleep(20)
  }
  await over
  return answers
}
