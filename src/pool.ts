import postgres from 'postgres'
import type { Config } from './config.js'
import { DatabaseSilence, type Sql } from './db.js'

/**
 * How long a statement may run, and a query wait for its answer, in milliseconds: a database that
 * has died is to be told within 5 s, and a burst of writes to one profile to be worked off.
 */
const STATEMENT_TIMEOUT = 4000
const QUERY_TIMEOUT = 4500
/** How often a pool is replaced at most, and how long a replaced one may still work; milliseconds. */
const REPLACE_INTERVAL = 250
const REPLACED_GRACE = 10_000

/**
 * The pool, and how many of its queries run and how many wait. They are written ahead to the
 * connections, so that this tells how many must wait at least, and not which.
 */
export type Pool = Sql & { usage(): { running: number; waiting: number } }

type PoolConfig = Pick<Config, 'databaseUrl' | 'databasePoolMax' | 'databasePrepare'>

/**
 * Opens the one pool. Connections are made when first needed; whoever calls this ends the pool.
 * A statement that overstays and a lost connection reject, and so does a query of this pool itself
 * (not of a transaction) that has no answer in QUERY_TIMEOUT, connecting included.
 *
 * Behind it stands a postgres.js pool that is replaced by a new one as soon as it has lost a
 * connection: in 3.4.9 a connection that was cut while it wrote never gets through again, and one
 * that the server ended fails the first query after it is back (`closed()` in its connection.js
 * leaves both states behind). The replaced pool works off what it has.
 */
export function openPool(config: PoolConfig): Pool {
  const pending = new Set<Pending>()
  const pools = new Set<Sql>()
  let replacement: NodeJS.Timeout | undefined
  let openedAt = 0
  let ended = false
  let current = open()

  function open(): Sql {
    const pool: Sql = connect(config, () => onLoss(pool))
    pools.add(pool)
    openedAt = performance.now()
    return pool
  }

  function onLoss(pool: Sql) {
    if (pool !== current || replacement || ended) return
    const pause = Math.max(0, openedAt + REPLACE_INTERVAL - performance.now())
    replacement = setTimeout(replace, pause)
  }

  function replace() {
    const lost = current
    replacement = undefined
    current = open()
    setTimeout(() => close(lost, 1), REPLACED_GRACE).unref()
  }

  async function close(pool: Sql, timeout: number) {
    await pool.end({ timeout })
    pools.delete(pool)
  }

  async function end({ timeout = 5 } = {}) {
    ended = true
    clearTimeout(replacement)
    await Promise.all([...pools].map((pool) => close(pool, timeout)))
  }

  function usage() {
    const running = Math.min(pending.size, config.databasePoolMax)
    return { running, waiting: pending.size - running }
  }

  const own: Record<string | symbol, unknown> = { end, usage }
  return new Proxy(current as Pool, {
    apply: (_target, _this, args) => {
      const pool = current
      return limit(Reflect.apply(pool, undefined, args), pending, () => onLoss(pool))
    },
    get: (_target, key) => own[key] ?? Reflect.get(current, key),
  })
}

/**
 * Gives a query its time limit. It is sent when it is awaited, and not at all where it is a part of
 * another; from then on it is in `pending` until it has its answer. `onSilence` is called when the
 * limit is reached.
 */
function limit(query: unknown, pending: Set<Pending>, onSilence: () => void) {
  if (!(query instanceof Promise)) return query
  const { then } = query
  const own = query as Promise<unknown> & Pending
  let timer: NodeJS.Timeout | undefined
  const settled = () => {
    clearTimeout(timer)
    pending.delete(own)
  }
  return Object.assign(query, {
    // biome-ignore lint/suspicious/noThenProperty: a query is a promise, and this is where it starts
    then(...handlers: Parameters<typeof then>) {
      if (!timer) {
        timer = setTimeout(() => {
          abandon(own)
          onSilence()
        }, QUERY_TIMEOUT)
        pending.add(own)
        then.call(query, settled, settled)
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
  query.reject(isSent ? new DatabaseSilence() : new Error('no connection was free in time'))
  if (!isSent) query.cancel()
}

function connect(config: PoolConfig, onclose: () => void): Sql {
  return postgres(config.databaseUrl, {
    max: config.databasePoolMax,
    prepare: config.databasePrepare,
    fetch_types: false,
    connect_timeout: 10,
    idle_timeout: 60,
    // A connection that ends by its age takes the pool with it, see above.
    max_lifetime: null,
    // Without this the pause between attempts grows to 20 s, and the service stays away that long
    // after the database is back.
    backoff: () => 0.25,
    onnotice: () => {},
    onclose,
    // A pooler that can't keep prepared statements refuses these at start-up too.
    connection: {
      application_name: 'llavero',
      ...(config.databasePrepare && {
        statement_timeout: STATEMENT_TIMEOUT,
        idle_in_transaction_session_timeout: STATEMENT_TIMEOUT,
        // Locks are taken first, and what they protect is read after: each statement anew.
        default_transaction_isolation: 'read committed',
      }),
    },
  })
}
