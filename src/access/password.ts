import { Piscina } from 'piscina'
import { shareFairly } from '../database/fair-share.js'
import { Failure } from '../http/answers/failures.js'
import { fitsBcrypt, isStorable } from '../texts.js'
import type { HashTask } from './password-worker.js'

/** How many threads hash passwords. */
const THREADS = 2
/**
 * How many tasks may wait. A thread does about 15 tasks a second, so the last one waits about
 * 8 s.
 */
const MAX_WAITING = 256

/**
 * Returns functions that hash and compare passwords in threads. Each user has at most one task in
 * the queue for the threads, so the users take turns. Logins have no user yet, and are not limited
 * in this way.
 *
 * The asynchronous functions of bcryptjs work on the event loop, where logins would delay all other
 * requests by seconds.
 */
export function startPasswords() {
  const threads = new Piscina({
    filename: new URL('./password-worker.js', import.meta.url).href,
    minThreads: 0,
    maxThreads: THREADS,
    idleTimeout: 60_000,
    // Otherwise Piscina moves a waiting task to the end whenever another one is done.
    stricterFIFO: true,
  })
  const takeShare = shareFairly(1)

  const run = (task: HashTask, userId?: number) =>
    takeShare(userId, async () => {
      if (threads.queueSize >= MAX_WAITING) throw new Failure('busy')
      return threads.run(task)
    })

  return {
    /**
     * Returns the bcrypt hash of `plain`, which the user `userId` has sent. Throws the Failure
     * `busy` if too many tasks wait, in all or of this user.
     */
    hash: (plain: string, userId?: number): Promise<string> => run({ plain }, userId),

    /**
     * Returns whether `hash` is a hash of `plain`. A text with NUL, an unpaired surrogate or more
     * than 72 bytes is nobody's password, and is not compared. Throws the Failure `busy` as `hash`
     * does.
     */
    async compare(plain: string, hash: string, userId?: number): Promise<boolean> {
      return isStorable(plain) && fitsBcrypt(plain) && run({ plain, hash }, userId)
    },

    /** Returns how many tasks wait for a thread. */
    waiting: () => threads.queueSize,

    close: () => threads.destroy(),
  }
}

/** Hashes and compares passwords in threads of their own. */
export type Passwords = ReturnType<typeof startPasswords>
