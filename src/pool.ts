import { setTimeout as sleep } from 'node:timers/promises'
import postgres, { type Options } from 'postgres'
import { type Config, parseDatabaseUrl } from './config.js'
import { DatabaseSilence, type Sql } from './db.js'

/**
 * How long a statement may run, and a query wait for its answer, in milliseconds: a database that
 * has died is to be told within 5 s, and a burst of writes to one profile to be worked off.
 */
const STATEMENT_TIMEOUT = 4000
const QUERY_TIMEOUT = 4500
/** The same for a query after one that got no answer, until the pool is replaced; milliseconds. */
const SILENT_TIMEOUT = 1000
/**
 * How often a pool is replaced at most, how long a replaced one may still work, and how often it is
 * looked whether it does; milliseconds.
 */
const REPLACE_INTERVAL = 250
const REPLACED_GRACE = 10_000
const RETIRE_INTERVAL = 50
/** How long one host of several may take to let a connection in, seconds. */
const PROBE_TIMEOUT = 2
/** SQLSTATEs. */
const TOO_MANY_CONNECTIONS = '53300'
const READ_ONLY = '25006'

/** The pool, and how many of its queries run and how many wait, at least: all are written ahead. */
export type Pool = Sql & { usage(): { running: number; waiting: number } }

type PoolConfig = Pick<Config, 'databaseUrl' | 'databasePoolMax' | 'databasePrepare'>
type Hosts = ReturnType<typeof parseDatabaseUrl>

/**
 * Opens the one pool. Connections are made when first needed; whoever calls this ends the pool.
 * A statement that overstays and a lost connection reject, and so does a query of this pool itself
 * (not of a transaction) that has no answer in QUERY_TIMEOUT, connecting included. Throws when the
 * configuration names several hosts and none of them serves.
 *
 * Behind it stands a postgres.js pool that is replaced by a new one as soon as it has lost a
 * connection: in 3.4.9 a connection that was cut while it wrote never gets through again, and one
 * that the server ended fails the first query after it is back (`closed()` in its connection.js
 * leaves both states behind). The replaced pool works off what it has. Of several hosts the new one
 * is on whichever serves by then.
 */
export async function openPool(config: PoolConfig): Promise<Pool> {
  const hosts = parseDatabaseUrl(config.databaseUrl)
  const pools = new Set<PostgresPool>()
  let ended = false
  let replacement: NodeJS.Timeout | undefined
  let current = open(await findHost(config, hosts))

  function open(url: URL): PostgresPool {
    const sql = connect(config, url, { onclose: () => onClose(pool) })
    const pool = {
      sql,
      openedAt: performance.now(),
      pending: 0,
      refusals: 0,
      isLost: false,
      isSilent: false,
    }
    pools.add(pool)
    return pool
  }

  function onClose(pool: PostgresPool) {
    if (pool.refusals > 0) pool.refusals -= 1
    else onLoss(pool)
  }

  function onLoss(pool: PostgresPool) {
    pool.isLost = true
    replaceSoon(pool)
  }

  function onError(pool: PostgresPool, error: unknown) {
    const { code } = error as { code?: string }
    // The server has no connection to spare. Those that the pool has are good, and all there are.
    if (code === TOO_MANY_CONNECTIONS) pool.refusals += 1
    // A session may stay so for good, though new ones on this host or on another may write.
    if (code === READ_ONLY) replaceSoon(pool)
  }

  function replaceSoon(pool: PostgresPool) {
    if (pool !== current || replacement || ended) return
    const pause = Math.max(0, pool.openedAt + REPLACE_INTERVAL - performance.now())
    replacement = setTimeout(replace, pause)
  }

  async function replace() {
    const replaced = current
    const wanted = replaced.isLost ? hosts : { ...hosts, sessionAttrs: 'read-write' as const }
    const url = await findHost(config, wanted).catch(() => undefined)
    if (ended) return
    if (!url) {
      replacement = setTimeout(replace, REPLACE_INTERVAL)
      return
    }
    replacement = undefined
    current = open(url)
    retire(replaced)
  }

  /** Closes a pool once nothing is under way in it any more: its connections are wanted elsewhere. */
  async function retire(pool: PostgresPool) {
    const deadline = performance.now() + REPLACED_GRACE
    while (pool.pending > 0 && performance.now() < deadline && !ended) await sleep(RETIRE_INTERVAL)
    if (!ended) await close(pool, 1)
  }

  async function close(pool: PostgresPool, timeout: number) {
    await pool.sql.end({ timeout })
    pools.delete(pool)
  }

  async function end({ timeout = 5 } = {}) {
    ended = true
    clearTimeout(replacement)
    await Promise.all([...pools].map((pool) => close(pool, timeout)))
  }

  function begin(...args: Parameters<Sql['begin']>) {
    const pool = current
    pool.pending += 1
    return pool.sql.begin(...args).finally(() => {
      pool.pending -= 1
    })
  }

  function usage() {
    const pending = [...pools].reduce((sum, pool) => sum + pool.pending, 0)
    const running = Math.min(pending, config.databasePoolMax)
    return { running, waiting: pending - running }
  }

  const own: Record<string | symbol, unknown> = { begin, end, usage }
  return new Proxy(current.sql as Pool, {
    apply: (_target, _this, args) => {
      const pool = current
      return limit(
        Reflect.apply(pool.sql, undefined, args),
        pool.isSilent ? SILENT_TIMEOUT : QUERY_TIMEOUT,
        {
          onStart: () => {
            pool.pending += 1
          },
          onSilence: () => {
            pool.isSilent = true
            onLoss(pool)
          },
          onEnd: (error) => {
            pool.pending -= 1
            if (error) onError(pool, error)
          },
        },
      )
    },
    get: (_target, key) => own[key] ?? Reflect.get(current.sql, key),
  })
}

/** A postgres.js pool. */
interface PostgresPool {
  sql: Sql
  openedAt: number
  /** Queries and transactions that it has not finished. */
  pending: number
  /** Connections that the server has refused to make, and whose end is still to be told. */
  refusals: number
  /** Whether it has lost a connection, or got no answer on one. */
  isLost: boolean
  isSilent: boolean
}

/** The first host to say that it serves; not asked where there is but one, and any session will do. */
async function findHost(config: PoolConfig, { urls, sessionAttrs }: Hosts): Promise<URL> {
  const [only] = urls
  if (only && urls.length === 1 && sessionAttrs === 'any') return only
  return Promise.any(urls.map((url) => probe(config, url, sessionAttrs))).catch(({ errors }) => {
    const reasons = errors.map(({ message }: Error) => message).join('; ')
    throw new Error(`no host of the database serves: ${reasons}`)
  })
}

/** Whether a session allows what is asked of it, as SQL. */
const CHECKS: Record<Hosts['sessionAttrs'], string> = {
  any: 'true',
  primary: 'not pg_is_in_recovery()',
  'read-write': "not current_setting('transaction_read_only')::boolean",
}

/**
 * Gives `url` back if a new session there allows what `attrs` asks. postgres.js could look for such
 * a host itself, but takes a standby of PostgreSQL 14 or later for one that can be written to, and
 * tries hosts that refuse again and again without a pause.
 */
async function probe(config: PoolConfig, url: URL, attrs: Hosts['sessionAttrs']): Promise<URL> {
  const sql = connect(config, url, { max: 1, connect_timeout: PROBE_TIMEOUT })
  try {
    const query = sql.unsafe<[{ serves: boolean }]>(`select ${CHECKS[attrs]} as serves`)
    const [{ serves }] = await limit(query, QUERY_TIMEOUT)
    if (serves) return url
    throw new Error(`${url.host} is not ${attrs}`)
  } finally {
    sql.end({ timeout: 0 })
  }
}

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
function limit<Query>(query: Query, timeout: number, watch: Watch = {}): Query {
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
  query.reject(isSent ? new DatabaseSilence() : new Error('no connection was free in time'))
  if (!isSent) query.cancel()
}

function connect(config: PoolConfig, url: URL, options: Options<Record<string, never>>): Sql {
  const address = new URL(url)
  // Asked by `probe`, see there.
  address.searchParams.delete('target_session_attrs')
  // In lists, which the types don't know: of a text it takes an IPv6 address apart.
  const host: object = {
    host: [url.hostname.replace(/^\[|\]$/g, '')],
    port: [Number(url.port || 5432)],
  }
  return postgres(address.href, {
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
    ...host,
    ...options,
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
