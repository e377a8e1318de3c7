import { availableParallelism } from 'node:os'
import { FixedQueue, Piscina } from 'piscina'
import { busy } from '../failure.js'
import type { HashTask } from './password-worker.js'

/** Hashing and comparing of passwords, off the event loop. */
export interface Passwords {
  /** The bcrypt hash of `plain`, 10 rounds (contract, section 8). */
  hash(plain: string): Promise<string>
  /** Whether `plain` is the password that `hash` was made of. */
  compare(plain: string, hash: string): Promise<boolean>
  /** How many hashes wait for a thread. */
  waiting(): number
  close(): Promise<void>
}

/** Hashes that may wait; at some 15 a second for each thread, the last one waits about 8 s. */
const MAX_WAITING = 256

/**
 * Starts the threads that hash. First come, first served; beyond MAX_WAITING a call throws the
 * Failure `busy`.
 *
 * Why threads: bcryptjs's own async form works on the event loop, and with 20 logins in flight all
 * other requests waited 8.5 s at p99. With threads that give way to the rest (password-worker.js)
 * it is 13 ms, 6 being the figure without logins, measured by `npm run bench -- --only login`.
 */
export function startPasswords(): Passwords {
  const pool = new Piscina<HashTask, string | boolean>({
    filename: new URL('./password-worker.js', import.meta.url).href,
    minThreads: 1,
    maxThreads: Math.min(2, availableParallelism()),
    idleTimeout: 60_000,
    // The pool's own order lets some wait for as long as there are newer ones.
    taskQueue: new FixedQueue(),
    maxQueue: MAX_WAITING,
  })

  const run = async (task: HashTask) => {
    if (pool.queueSize >= MAX_WAITING) throw busy()
    return pool.run(task)
  }

  return {
    hash: async (plain) => (await run({ plain })) as string,
    compare: async (plain, hash) => (await run({ plain, hash })) as boolean,
    waiting: () => pool.queueSize,
    close: () => pool.destroy(),
  }
}
