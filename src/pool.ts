import { setTimeout as sleep } from 'node:timers/promises'
import { parseDatabaseUrl } from './config.js'
import { connect, type DatabaseConfig } from './connect.js'
import { DatabaseSilence, type Sql } from './db.js'
import { ask, findHost } from './hosts.js'
import { takeTurns } from './turns.js'

/**
 * How long a query may wait for its answer, in milliseconds: a database that has died is to be told
 * within 5 s. And how long after one that got no answer, until the pool is replaced.
 */
const QUERY_TIMEOUT = 4500
const SILENT_TIMEOUT = 1000
/**
 * How often a pool is replaced at most, and how often that is tried while the pool that there is
 * still does something; how long a replaced pool may still work, and how often it is looked whether
 * it does; milliseconds.
 */
const REPLACE_INTERVAL = 250
const RETRY_INTERVAL = 1000
const REPLACED_GRACE = 10_000
const RETIRE_INTERVAL = 50
/** How long the connections that there are have to do once the server has refused another one. */
const REFUSED_PAUSE = 1000
/** SQLSTATEs: of a server that lets nobody in now, and of one that lets nobody write. */
const TOO_MANY_CONNECTIONS = '53300'
const REFUSALS = [TOO_MANY_CONNECTIONS, '28000', '28P01', '42501', '55000']
const READ_ONLY = '25006'

/** The pool, and how many of its queries run and how many wait for a connection. */
export type Pool = Sql & { usage(): { running: number; waiting: number } }

/**
 * Opens the one pool. Connections are made when first needed; whoever calls this ends the pool.
 * A statement that overstays and a lost connection reject, and so does a query of this pool itself
 * (not of a transaction) that has no answer in QUERY_TIMEOUT, connecting included. Throws when the
 * configuration names several hosts and none of them serves; when that comes later, `onNoHost` is
 * told why, once until one does.
 *
 * Queries take turns for the connections here and not in postgres.js, which sends them behind
 * others: behind one that waits for a lock, while the next connection is free.
 *
 * Behind it stands a postgres.js pool that is replaced by a new one as soon as it has lost a
 * connection, be it for having been idle: in 3.4.9 a connection that was cut while it wrote never
 * gets through again, and one that the server ended fails the first query after it is back
 * (`closed()` in its connection.js leaves both states behind). The replaced pool works off what it
 * has. Of several hosts the new one is on whichever serves by then.
 *
 * What was sent and got no answer in QUERY_TIMEOUT may still be carried out, but nothing is sent any
 * more until the server has been told to end those sessions: a write must not come after one that was
 * answered later than it was given up. One that had waited for its turn is given up sooner, and one
 * whose connection was cut at once: those may.
 *
 * It is for queries that are awaited, and for `begin`: `unsafe`, `reserve` and `cursor` know nothing
 * of turns.
 */
export async function openPool(
  config: DatabaseConfig,
  onNoHost: (reasons: Error) => void = () => {},
): Promise<Pool> {
  const hosts = parseDatabaseUrl(config.databaseUrl)
  const pools = new Set<PostgresPool>()
  const turns = takeTurns()
  let ended = false
  let replacement: NodeJS.Timeout | undefined
  let refusedPause: NodeJS.Timeout | undefined
  /** How many connections there are, for as long as the server has refused another one. */
  let few: number | undefined
  let isWithoutHost = false
  /** Queries that nobody waits for any more, until their sessions are done with them. */
  const givenUp = new Map<Query, { url: URL; pid: number; end(): void }>()
  /** How many had no answer that long that no session can still be at work on them. */
  let silences = 0
  let current = open(await findHost(config, hosts))
  admit()

  function admit() {
    turns.allow(silences > 0 ? 0 : (few ?? config.databasePoolMax))
  }

  function open(url: URL): PostgresPool {
    const sql = connect(config, url, { onclose: () => onClose(pool) })
    const pool = {
      sql,
      url,
      send: (sql`` as unknown as Query).handler,
      openedAt: performance.now(),
      pending: 0,
      refusals: 0,
      isLost: false,
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

  function onSilence() {
    silences += 1
    admit()
    onLoss(current)
  }

  function onError(pool: PostgresPool, error: unknown) {
    const { code } = error as { code?: string }
    // The server has no connection to spare. Those that the pool has are good, and all there are.
    if (code === TOO_MANY_CONNECTIONS) {
      pool.refusals += 1
      useWhatThereIs()
    }
    // A session may stay so for good, though new ones on this host or on another may write.
    if (code === READ_ONLY) replaceSoon(pool)
  }

  /** For a while nobody gets a turn that would need another connection. */
  function useWhatThereIs() {
    few = Math.max(1, turns.running() - 1)
    admit()
    clearTimeout(refusedPause)
    refusedPause = setTimeout(() => {
      few = undefined
      admit()
    }, REFUSED_PAUSE).unref()
  }

  function replaceSoon(pool: PostgresPool) {
    if (pool !== current || replacement || ended) return
    const pause = Math.max(0, pool.openedAt + REPLACE_INTERVAL - performance.now())
    replacement = setTimeout(replace, pause)
  }

  async function replace() {
    const replaced = current
    const wanted = replaced.isLost ? hosts : { ...hosts, sessionAttrs: 'read-write' as const }
    const told = new Map(givenUp)
    const toldSilences = silences
    try {
      const url = await findHost(config, wanted)
      await takeOver(url, told)
      if (ended) return
      isWithoutHost = false
      replacement = undefined
      current = open(url)
    } catch (error) {
      if (ended) return
      if (!isWithoutHost) onNoHost(error as Error)
      isWithoutHost = true
      const isOfUse = !replaced.isLost || isRefusal(error)
      replacement = setTimeout(replace, isOfUse ? RETRY_INTERVAL : REPLACE_INTERVAL)
      return
    }
    for (const { end } of told.values()) end()
    silences -= toldSilences
    // Another one has come meanwhile.
    if (silences > 0) onLoss(current)
    admit()
    retire(replaced)
  }

  /**
   * Ends the sessions of queries that were given up, where there are any. Throws when the host can't
   * be worked with instead of the pool that there is: a host that is not there at all says so faster
   * than the connections of a pool that it has left.
   */
  async function takeOver(url: URL, told: typeof givenUp) {
    // Behind a pooler the server knows other numbers.
    const isKnown = (before: { url: URL }) => config.databasePrepare && before.url.host === url.host
    const pids = [...told.values()].filter(isKnown).map(({ pid }) => pid)
    await ask(
      config,
      url,
      (sql) => sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where pid = any(${`{${pids.join(',')}}`}::integer[]) and usename = current_user
          and datname = current_database()
      `,
    ).catch((error) => {
      // It can be worked with, but this user may end no sessions there.
      if (error.severity === 'ERROR') return
      if (silences > 0 || isRefusal(error)) throw error
    })
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

  /** Takes a turn on the pool that is the current one by then; `leave` may be called again. */
  function takeTurn(begin: (pool: PostgresPool, leave: Leave) => void) {
    return turns.join(() => {
      const pool = current
      pool.pending += 1
      let isOver = false
      begin(pool, (isFailed) => {
        if (isOver) return
        isOver = true
        pool.pending -= 1
        // Its connection is not free before postgres.js is done with it, nor known to be lost before
        // its socket is closed, which comes after the error.
        if (isFailed) setTimeout(turns.leave)
        else queueMicrotask(turns.leave)
      })
    })
  }

  function begin(...args: Parameters<Sql['begin']>) {
    return new Promise((resolve, reject) => {
      takeTurn((pool, leave) =>
        pool.sql
          .begin(...args)
          .finally(() => leave(true))
          .then(resolve, reject),
      )
    })
  }

  /** Has a query wait for its turn, and for its answer, no longer than it may. */
  function limit(query: Query) {
    const { resolve, reject } = query
    query.handler = () => {
      let pool: PostgresPool | undefined
      let leave: Leave = () => {}
      let isOver = false
      const timers: NodeJS.Timeout[] = []

      function end(isFailed = true) {
        isOver = true
        for (const timer of timers) clearTimeout(timer)
        givenUp.delete(query)
        leave(isFailed)
      }
      query.resolve = (rows) => {
        end(false)
        resolve(rows)
      }
      query.reject = (error) => {
        end()
        if (pool) onError(pool, error)
        reject(error)
      }

      const withdraw = takeTurn((own, leaveTurn) => {
        pool = own
        leave = leaveTurn
        timers.push(setTimeout(onSilence, QUERY_TIMEOUT))
        own.send(query)
      })
      // After `onSilence`, which is due at the same time: nobody is to get the turn in between.
      timers.push(setTimeout(giveUp, silences > 0 ? SILENT_TIMEOUT : QUERY_TIMEOUT))

      function giveUp() {
        if (isOver) return
        const { state } = query
        reject(new DatabaseSilence(state !== null))
        withdraw()
        if (!pool) return
        if (state) {
          givenUp.set(query, { url: pool.url, pid: state.pid, end })
        } else {
          // It has been waiting for a connection to be made, which is no good any more.
          query.cancel()
          onLoss(pool)
        }
      }
    }
  }

  function usage() {
    return { running: turns.running(), waiting: turns.waiting() }
  }

  const own: Record<string | symbol, unknown> = { begin, end, usage }
  return new Proxy(current.sql as Pool, {
    apply: (_target, _this, args) => {
      const query = Reflect.apply(current.sql, undefined, args)
      if (query instanceof Promise) limit(query as unknown as Query)
      return query
    },
    get: (_target, key) => own[key] ?? Reflect.get(current.sql, key),
  })
}

const isRefusal = (error: unknown) => REFUSALS.includes((error as { code: string }).code)

/** Gives a turn back. */
type Leave = (isFailed: boolean) => void

/** What postgres.js has on a query beside the promise. A fragment of another is never handled. */
interface Query {
  /** Sends it, once it is awaited. */
  handler(query: Query): void
  /** The session that it was sent to; null before. */
  state: { pid: number } | null
  resolve(rows: unknown): void
  reject(error: unknown): void
  cancel(): void
}

/** A postgres.js pool. */
interface PostgresPool {
  sql: Sql
  url: URL
  send: Query['handler']
  openedAt: number
  /** Queries and transactions that it has not finished. */
  pending: number
  /** Connections that the server has refused to make, and whose end is still to be told. */
  refusals: number
  /** Whether it has lost a connection, or may have. */
  isLost: boolean
}
