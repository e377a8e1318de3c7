import { setTimeout as sleep } from 'node:timers/promises'
import { parseDatabaseUrl } from './config.js'
import { connect, type DatabaseConfig } from './connect.js'
import type { Sql } from './db.js'
import { findHost } from './hosts.js'
import { limitQuery, QUERY_TIMEOUT } from './query-limit.js'

/** QUERY_TIMEOUT for a query after one that got no answer, until the pool is replaced; milliseconds. */
const SILENT_TIMEOUT = 1000
/**
 * How often a pool is replaced at most, how often a host that can be written to is looked for, how
 * long a replaced pool may still work, and how often it is looked whether it does; milliseconds.
 */
const REPLACE_INTERVAL = 250
const READ_ONLY_INTERVAL = 1000
const REPLACED_GRACE = 10_000
const RETIRE_INTERVAL = 50
/** SQLSTATEs. */
const TOO_MANY_CONNECTIONS = '53300'
const READ_ONLY = '25006'

/** The pool, and how many of its queries run and how many wait, at least: all are written ahead. */
export type Pool = Sql & { usage(): { running: number; waiting: number } }

/**
 * Opens the one pool. Connections are made when first needed; whoever calls this ends the pool.
 * A statement that overstays and a lost connection reject, and so does a query of this pool itself
 * (not of a transaction) that has no answer in QUERY_TIMEOUT, connecting included. Throws when the
 * configuration names several hosts and none of them serves; when that comes later, `onNoHost` is
 * told why, once until one does.
 *
 * Behind it stands a postgres.js pool that is replaced by a new one as soon as it has lost a
 * connection, be it for having been idle: in 3.4.9 a connection that was cut while it wrote never gets through again, and one
 * that the server ended fails the first query after it is back (`closed()` in its connection.js
 * leaves both states behind). The replaced pool works off what it has. Of several hosts the new one
 * is on whichever serves by then.
 */
export async function openPool(
  config: DatabaseConfig,
  onNoHost: (reasons: Error) => void = () => {},
): Promise<Pool> {
  const hosts = parseDatabaseUrl(config.databaseUrl)
  const pools = new Set<PostgresPool>()
  let ended = false
  let replacement: NodeJS.Timeout | undefined
  let isWithoutHost = false
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
    const found = await findHost(config, wanted).catch((reasons: Error) => reasons)
    if (ended) return
    if (found instanceof Error) {
      if (!isWithoutHost) onNoHost(found)
      isWithoutHost = true
      replacement = setTimeout(replace, replaced.isLost ? REPLACE_INTERVAL : READ_ONLY_INTERVAL)
      return
    }
    isWithoutHost = false
    replacement = undefined
    current = open(found)
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
      return limitQuery(
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
