import { availableParallelism } from 'node:os'
import pLimit from 'p-limit'
import type { Piscina } from 'piscina'
import { Failure } from '../http/failures.js'
import type { HashTask } from './password-worker.js'

/** The connection of a client. If it is closed before a thread is free, nothing is compared. */
export interface Client {
  destroyed: boolean
}

/** Hashes and compares passwords in threads of their own. */
export interface Passwords {
  /** Returns the bcrypt hash of `plain`. Throws the Failure `busy` if too many tasks wait. */
  hash(plain: string): Promise<string>
  /**
   * Returns whether `hash` is a hash of `plain`. Throws the Failure `busy` if too many tasks wait,
   * or if `client` was closed before a thread was free.
   */
  compare(plain: string, hash: string, client: Client): Promise<boolean>
  /** Returns the number of tasks that wait for a thread. */
  waiting(): number
  /** Ends the threads. */
  close(): Promise<void>
}

/**
 * How many tasks may wait at most. Each of two threads does about 15 tasks a second, so the last
 * one waits about 8 s.
 */
const MAX_WAITING = 256

/**
 * Returns functions that hash and compare passwords in threads, in the order of the calls.
 *
 * The asynchronous functions of bcryptjs would work on the event loop. With 20 logins in flight,
 * other requests would then take 8.5 s (99th percentile). With threads of lower priority
 * (password-worker.js) they take 11 ms, and without any login 7 ms. The last two figures come from
 * `npm run bench -- --only login`.
 */
export function startPasswords(): Passwords {
  const maxThreads = Math.min(2, availableParallelism())
  let opened: Promise<Piscina> | undefined

  /** Opens the pool of threads at the first task, so that the service starts faster. */
  function openPool() {
    opened ??= import('piscina').then(({ Piscina }) => {
      const worker = new URL('./password-worker.js', import.meta.url)
      return new Piscina({
        filename: worker.href,
        minThreads: 0,
        maxThreads,
        idleTimeout: 60_000,
      })
    })
    return opened
  }

  // Tasks wait in this queue and not in Piscina's. So a task can be dropped if its client has
  // closed the connection before a thread is free. Piscina drops a task only if the task's
  // AbortSignal is aborted. If the task is running by then, Piscina ends its thread.
  const limit = pLimit(maxThreads)

  async function run(task: HashTask, client?: Client) {
    if (limit.pendingCount >= MAX_WAITING) throw new Failure('busy')
    return limit(async () => {
      if (client?.destroyed) throw new Failure('busy')
      const pool = await openPool()
      return pool.run(task)
    })
  }

  return {
    hash: (plain) => run({ plain }),
    compare: (plain, hash, client) => run({ plain, hash }, client),
    waiting: () => limit.pendingCount,
    close: async () => {
      const pool = await opened
      await pool?.destroy()
    },
  }
}
