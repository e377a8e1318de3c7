import { setTimeout as sleep } from 'node:timers/promises'

/** Calls `ask` every 20 ms until `others` has settled; returns all results. */
export async function during<T>(others: Promise<unknown>, ask: () => Promise<T>): Promise<T[]> {
  const answers: T[] = []
  let isOver = false
  const over = others.finally(() => {
    isOver = true
  })
  while (!isOver) {
    answers.push(await ask())
    await sleep(20)
  }
  await over
  return answers
}
