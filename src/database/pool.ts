import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import fastq from 'fastq'
import postgres, { type Row, type RowList } from 'postgres'
import type { Config } from '../config.js'
import { Failure } from '../http/answers/failures.js'
import { CONNECT_TIMEOUT_SECONDS, type Host, openDriver, type Query } from './connection.js'
import { shareFairly } from './fair-share.js'
import { AnswerTimeout, type Sql, StatementNotSent, withTimeout } from './sql.js'

/**
 * How long a statement may wait for its turn and for a connection that must be opened, in
 * milliseconds. This is long enough for at least one attempt to open a connection.
 */
const SEND_TIMEOUT = 1000 * CONNECT_TIMEOUT_SECONDS + 500
/** How long the pool waits after a failed attempt to open a connection, in milliseconds. */
const RETRY_PAUSE = 100
/**
 * A host that has answered a statement less than this many milliseconds ago is not down. If it
 * refuses a new connection, it has too many connections.
 */
const KNOWN_UP_FOR = 1000
/** How long the statements of a replaced driver may take, in seconds. */
const END_TIMEOUT_SECONDS = 5

/** The SQLSTATE of a write in a session that is read-only, and of require_primary on a standby. */
const READ_ONLY = '25006'

/** PostgreSQL's settings for the connections of the pool. */
const SETTINGS = {
  // In milliseconds. It is less than ANSWER_TIMEOUT, so that the server cancels a statement before
  // the pool gives it up.
  statement_timeout: 4000,
  // The server probes a client that has been silent for this long, in seconds. If the client does
  // not answer, the server ends the session.
  tcp_keepalives_idle: 60,
  // A function in sql/transactions locks rows first and reads afterwards. At this isolation level
  // its reads see what other transactions committed while it waited for its locks.
  default_transaction_isolation: 'read committed',
  // PostgreSQL's planner assumes that reading a page at random costs this many times as much as
  // reading the next page in sequence. The default of 4 is for hard disks. With this default,
  // PostgreSQL finds one row of a table with 200 rows by reading them all, also for each foreign
  // key that it checks.
  random_page_cost: 1.1,
  // Each connection plans a statement once, whatever the parameters are. Otherwise PostgreSQL would
  // plan each statement with an array anew at each call, which can take longer than the statement.
  plan_cache_mode: 'force_generic_plan',
} as const

/** The pool of connections to the primary. */
export type Pool = ReturnType<typeof openPool>

/**
 * Returns the pool, which the caller must end. It is one instance of postgres.js at a time, with a
 * queue of statements in front of it.
 *
 * A statement whose turn comes later than SEND_TIMEOUT after its arrival is refused. Until then,
 * the pool tries to open a connection for it. Once it is sent, the pool waits for its answer for at
 * most ANSWER_TIMEOUT, and never sends it again. The error of a statement says what the server has
 * done:
 * - StatementNotSent and the Failure `busy`: the server has never received the statement.
 * - A PostgresError: the server has refused the statement, unless a pooler has sent the error (see
 *   mayHaveHappened).
 * - Any other error: the server may have executed the statement.
 *
 * If a connection is lost, a new instance takes the place of the old one, which ends when its last
 * statement has been answered. If a statement has no answer in time, the network or the server
 * counts as silent, since SETTINGS give the server less time. Then all connections of its instance
 * are reset, and the new instance has the next host.
 */
export function openPool(config: Config, log: Pick<FastifyBaseLogger, 'info' | 'error'>) {
  const max = config.DATABASE_POOL_MAX
  const queue = fastq.promise(send, max)
  const takeShare = shareFairly(Math.max(1, Math.floor(max / 2)))
  /** The hosts. The first one is the host of the present driver. */
  const hosts = [...config.DATABASE_URL.hosts]
  let driver = open()
  /** Why the last attempt to open a connection has failed. */
  let lastFailure: Error | undefined
  /** When a statement was last answered, in milliseconds since the process has started. */
  let answeredAt = -Infinity
  /** The host that serves the pool, for the log. Undefined while the database is lost. */
  let servingHost = hosts[0]
  let isEnded = false

  function open() {
    return openDriver(config, hosts[0] as Host, {
      max,
      // At most one statement is in flight on a connection. Otherwise a statement could wait behind
      // one that waits for a lock, while other connections are free.
      max_pipeline: 0,
      // PgBouncer refuses the settings, and in transaction mode it may not support prepared
      // statements. One variable turns off both.
      ...(config.DATABASE_PREPARE === 'true' && { connection: SETTINGS }),
    })
  }

  /**
   * Returns the pool for the statements of a user, or of no user. Together the statements of a user
   * get at most half of the connections, but at least one. Further ones wait. If too many of them
   * wait already, a statement rejects with the Failure `busy`.
   */
  function forUser(userId?: number): Sql {
    return (pieces, ...values) => {
      const query = driver.sql(pieces, ...(values as never[])) as Query
      const { resolve, reject } = query
      // postgres.js calls the `handler` of a query when the query is awaited. Its own handler sends
      // the query at once. This one queues it, and passes the pool's answer on to the caller.
      query.handler = () => {
        const sendBy = performance.now() + SEND_TIMEOUT
        takeShare(userId, () => queue.push({ query, sendBy })).then(resolve, reject)
      }
      return query as never
    }
  }

  /**
   * Returns the rows of a statement. Tries to open a connection for it until the time `sendBy`.
   * Logs the loss of the database, once.
   */
  async function send({ query, sendBy }: { query: Query; sendBy: number }) {
    while (performance.now() < sendBy && !isEnded) {
      const rows = await trySend(query)
      if (rows) return rows
      await sleep(RETRY_PAUSE)
    }
    // There is no `lastFailure` if the pool has ended, if all connections are in use, or if a host
    // that has just answered accepts no more of them.
    if (!lastFailure) throw new Failure('busy')
    if (servingHost) log.error({ ...servingHost, err: lastFailure }, 'the database is lost')
    servingHost = undefined
    throw new StatementNotSent(lastFailure)
  }

  /** Returns the rows of a statement, or undefined if no connection could be opened for it. */
  async function trySend(query: Query) {
    const used = driver
    const answer = new Promise<RowList<Row[]>>((resolve, reject) => {
      query.resolve = resolve
      query.reject = reject
      used.send(query)
    })
    try {
      const rows = await withTimeout(answer)
      // postgres.js 3.4.9 loses a statement that it sends after a connection has failed and before
      // its socket has closed. Either the statement gets no answer, or it resolves without a
      // command when the driver has connected again.
      if (!rows.command) throw new Error('the connection to the database was lost')
      onAnswer(used)
      // The last `count` entries are the rows. After a statement that has failed partway through
      // its rows, postgres.js puts empty entries before those of the next result.
      rows.splice(0, rows.length - rows.count)
      return rows
    } catch (error) {
      const isUnsent = query.state === null
      if (isUnsent) onConnectFailure(used, error as Error)
      if (error instanceof AnswerTimeout) {
        used.reset()
        turnToNextHost(used)
      }
      if (isUnsent) return undefined
      // After a PostgresError other than READ_ONLY, either the connection can still be used, or the
      // server closes it, which the driver notices.
      const isAnswer = error instanceof postgres.PostgresError && error.code !== READ_ONLY
      if (isAnswer) onAnswer(used)
      else replace(used)
      throw error
    }
  }

  /** Notes that the host of `used` answers, unless another driver has taken the place of `used`. */
  function onAnswer(used: typeof driver) {
    if (used !== driver) return
    if (servingHost !== used.host) log.info(used.host, 'the database serves again')
    servingHost = used.host
    lastFailure = undefined
    answeredAt = performance.now()
  }

  /**
   * Remembers why no connection could be opened. If there are several hosts, turns to the next one.
   * If the host has just answered, it only has too many connections, and nothing is done.
   */
  function onConnectFailure(used: typeof driver, error: Error) {
    const hasJustAnswered = performance.now() - answeredAt < KNOWN_UP_FOR
    if (hasJustAnswered) return
    lastFailure = error
    if (hosts.length > 1) turnToNextHost(used)
  }

  /**
   * If `used` is still the present driver, lets a driver for the next host take its place. If there
   * is only one host, that is the same host.
   */
  function turnToNextHost(used: typeof driver) {
    if (used !== driver) return
    hosts.push(hosts.shift() as Host)
    // What this driver's host has answered says nothing about the next one.
    answeredAt = -Infinity
    replace(used)
  }

  /**
   * Lets a new driver take the place of `used`, which ends when its statements have been answered.
   */
  function replace(used: typeof driver) {
    if (used !== driver) return
    driver = open()
    void used.end(END_TIMEOUT_SECONDS)
  }

  return Object.assign(forUser(), {
    forUser,
    /**
     * Returns how many statements have a connection or open one, and how many wait for one. Those
     * that wait for their user's share are not counted.
     */
    usage: () => ({ running: queue.running(), waiting: queue.length() }),
    /**
     * Closes all connections. Statements in the queue and later ones are never sent, and reject.
     */
    async end() {
      isEnded = true
      await driver.end(1)
    },
  })
}
