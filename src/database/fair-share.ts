import fastq from 'fastq'
import { LRUCache } from 'lru-cache'
import { Failure } from '../http/answers/failures.js'

/** How many tasks of one user may wait. */
const MAX_WAITING_TASKS = 64
/**
 * How many queues are kept. If there are more, the least recently used one is forgotten: its tasks
 * go on, and its user gets another queue.
 */
const MAX_QUEUES = 10_000

/**
 * Returns a function that calls `task` for a user. At most `concurrency` tasks of one user are in
 * progress at a time. Further ones wait, in the order of the calls. If MAX_WAITING_TASKS tasks of
 * the user wait already, the function throws the Failure `busy`. Tasks without a user have no
 * limit.
 *
 * A task may itself wait in a queue of all users, for example for a connection. No user has more
 * than `concurrency` tasks in that queue, so the users take turns.
 */
export function shareFairly(concurrency: number) {
  const open = () => fastq.promise((task: () => Promise<unknown>) => task(), concurrency)
  const shares = new LRUCache<number, ReturnType<typeof open>>({
    max: MAX_QUEUES,
    memoMethod: open,
  })

  return async <T>(userId: number | undefined, task: () => Promise<T>) => {
    if (userId === undefined) return task()
    const share = shares.memo(userId)
    if (share.length() >= MAX_WAITING_TASKS) throw new Failure('busy')
    return share.push(task) as Promise<T>
  }
}
