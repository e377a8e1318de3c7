import fastq from 'fastq'
import { LRUCache } from 'lru-cache'
import { Failure } from '../answers/failures.js'

/** How many tasks of one user may wait. */
const MAX_WAITING = 64
/** The number of users whose shares are kept. The share that was not used for the longest time goes first. */
const USERS = 10_000

/**
 * Returns a function that calls `task` for a user. At most `concurrency` tasks of one user are in
 * progress at a time. Further ones wait, in the order of the calls. If MAX_WAITING tasks of the user
 * wait already, the function throws the Failure `busy`. Tasks of nobody have no limit.
 *
 * A task in progress waits in a queue that all users share, for example for a connection. Since each
 * user has at most `concurrency` tasks in that queue, the users take turns in it.
 */
export function shareFairly(concurrency: number) {
  const open = () => fastq.promise((task: () => Promise<unknown>) => task(), concurrency)
  const shares = new LRUCache<number, ReturnType<typeof open>>({ max: USERS, memoMethod: open })

  return async <T>(user: number | undefined, task: () => Promise<T>) => {
    if (user === undefined) return task()
    const share = shares.memo(user)
    if (share.length() >= MAX_WAITING) throw new Failure('busy')
    return share.push(task) as Promise<T>
  }
}
