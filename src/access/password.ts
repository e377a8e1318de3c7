import type { Socket } from 'node:net'
import fastq from 'fastq'
import { Piscina } from 'piscina'
import { Failure } from '../http/answers/failures.js'
import { shareFairly } from '../http/limits/fair-share.js'
import type { HashTask } from './password-worker.js'
import { PASSWORD_CONSTRAINTS } from './schemas.js'

/** How many threads hash passwords. */
const THREADS = 2
/**
 * How many tasks may wait at most. Each of the two threads does about 15 tasks a second, so the last
 * one waits about 8 s.
 */
const MAX_WAITING = 256

/** A task, and the connection of the client that waits for it. */
interface Task extends HashTask {
  client?: Socket
}

/**
 * Returns functions that hash and compare passwords in threads. Each user has at most one task in the queue
 * for the threads, so the users take turns. Logins have no user yet, and are not limited in this way.
 *
 * The asynchronous functions of bcryptjs work on the event loop, where logins would delay all other requests
 * by seconds. `npm run bench -- --only login` measures the delay that remains with threads.
 */
export function startPasswords() {
  const threads = new Piscina({
    filename: new URL('./password-worker.js', import.meta.url).href,
    minThreads: 0,
    maxThreads: THREADS,
    idleTimeout: 60_000,
  })
  // Tasks wait in this queue and not in Piscina's. So a task can be dropped if its client has
  // closed the connection before a thread is free. Piscina drops a task only if the task's
  // AbortSignal is aborted. If the task is running by then, Piscina ends its thread.
  const queue = fastq.promise(runTask, THREADS)
  const takeShare = shareFairly(1)

  async function run(task: Task, user?: number) {
    return takeShare(user, async () => {
      if (queue.length() >= MAX_WAITING) throw new Failure('busy')
      return queue.push(task)
    })
  }

  async function runTask({ client, ...task }: Task) {
    if (client?.destroyed) throw new Failure('busy')
    return threads.run(task)
  }

  return {
    /**
     * Returns the bcrypt hash of `plain`, which `user` has sent. Throws the Failure `busy` if too many
     * tasks wait, in all or of this user.
     */
    hash: (plain: string, user?: number): Promise<string> => run({ plain }, user),

    /**
     * Returns whether `hash` is a hash of `plain`. A text that no stored user can have as the password
     * is not compared. Throws the Failure `busy` as `hash` does, and if `client`, the connection of
     * the client that waits, was closed before a thread was free.
     */
    async compare(plain: string, hash: string, client: Socket, user?: number): Promise<boolean> {
      const isPossible = PASSWORD_CONSTRAINTS.every(({ isSatisfied }) => isSatisfied(plain))
      return isPossible && run({ plain, hash, client }, user)
    },

    /** Returns the number of tasks that wait for a thread. */
    waiting: queue.length,

    /** Ends the threads. */
    close: () => threads.destroy(),
  }
}

/** Hashes and compares passwords in threads of their own. */
export type Passwords = ReturnType<typeof startPasswords>
