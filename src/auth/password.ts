import { availableParallelism } from 'node:os'
import pLimit from 'p-limit'
import type { Piscina } from 'piscina'
import { Failure } from '../http/failures.js'
import type { HashTask } from './password-worker.js'

/** The connection of a client that waits. Once it is closed, its password is not compared. */
type Client = { destroyed: boolean }

/** Hashing and comparing of passwords, off the event loop. */
export interface Passwords {
  /** The bcrypt hash of `plain`, 10 rounds (contract, section 8). */
  hash(plain: string): Promise<string>
  /** Whether `plain` is the password that `hash` was made of; `client` waits for the answer. */
  compare(plain: string, hash: string, client: Client): Promise<boolean>
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
 * it is 11 ms, 7 being the figure without logins, measured by `npm run bench -- --only login`.
 */
export function startPasswords(): Passwords {
  const maxThreads = Math.min(2, availableParallelism())
  let opened: Promise<Piscina> | undefined

  /** Opens the pool of threads at the first hash: a service without logins saves 15 MB and 20 ms. */
  function openPool() {
    opened ??= import('piscina').then(({ Piscina }) => {
      const filename = new URL('./password-worker.js', import.meta.url).href
      return new Piscina({ filename, minThreads: 0, maxThreads, idleTimeout: 60_000 })
    })
    return opened
  }

  // The queue. Piscina's own stays empty: once a task has begun, dropping it would end its thread.
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
