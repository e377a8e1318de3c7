import { DatabaseSilence } from './db.js'

/**
 * How long a query may wait for its answer, in milliseconds: a database that has died is to be told
 * within 5 s.
 */
export const QUERY_TIMEOUT = 4500

/** What is told of a query. */
interface Watch {
  onStart?(): void
  /** It has got no answer in time. */
  onSilence?(): void
  /** It is over, `error` undefined where it went well. */
  onEnd?(error?: unknown): void
}

/**
 * Gives a query its time limit, in milliseconds. It is sent when it is awaited, and not at all where
 * it is a part of another.
 */
export function limitQuery<Query>(query: Query, timeout: number, watch: Watch = {}): Query {
  if (!(query instanceof Promise)) return query
  const { then } = query
  const pending = query as unknown as Pending
  let timer: NodeJS.Timeout | undefined
  const settled = (error?: unknown) => {
    clearTimeout(timer)
    watch.onEnd?.(error)
  }
  return Object.assign(query, {
    // biome-ignore lint/suspicious/noThenProperty: a query is a promise, and this is where it starts
    then(...handlers: Parameters<typeof then>) {
      if (!timer) {
        timer = setTimeout(() => {
          abandon(pending)
          watch.onSilence?.()
        }, timeout)
        watch.onStart?.()
        then.call(query, () => settled(), settled)
      }
      return then.apply(query, handlers)
    },
  })
}

/** What postgres.js has on a query beside the promise. */
type Pending = { state: unknown; cancel(): void; reject(error: unknown): void }

/** What still waits for a connection is taken back; what has been sent can't be. */
function abandon(query: Pending) {
  const isSent = query.state !== null
  query.reject(new DatabaseSilence(isSent))
  if (!isSent) query.cancel()
}
