import type { FastifyBaseLogger } from 'fastify'
import type { PendingQuery, Row } from 'postgres'
import { Failure } from '../http/failures.js'
import { type DatabaseConfig, openDriver, requirePrimary } from './connection.js'
import { CONNECT_TIMEOUT, connectionLost, createLink, type Host, type Link } from './link.js'
import { createQueue } from './queue.js'
import {
  ANSWER_TIMEOUT,
  DatabaseTimeout,
  isOfPooler,
  isPostgresError,
  type Sql,
  StatementNotSent,
} from './sql.js'

/**
 * How long a statement may wait for a connection, in milliseconds. This is long enough for at least one
 * attempt to open a connection.
 */
const SEND_TIMEOUT = CONNECT_TIMEOUT + 500
/** How long the pool waits after a failed attempt to open a connection, in milliseconds. */
const RETRY_PAUSE = 100

/** The pool of connections to the primary. */
export interface Pool extends Sql {
  /**
   * Returns the pool for the statements of `key`. Together they get at most half of the connections,
   * but at least one. Further ones wait, and the keys with waiting statements take turns. If too many
   * of one key wait already, a statement rejects with the Failure `busy`.
   */
  share(key: string): Sql
  /** Returns how many statements are in flight, and how many wait for a connection. */
  usage(): { running: number; waiting: number }
  /**
   * Closes all connections. Statements that are still waiting or come later reject with
   * StatementNotSent.
   */
  end(): Promise<void>
}

/**
 * What the pool uses of a query of postgres.js 3.4.9, beyond its types. The driver calls `handler`
 * when the query is awaited for the first time. The driver's own handler sends the query at once
 * over a free connection, and sets `state` to its object for that connection.
 */
interface Query extends PendingQuery<Row[]> {
  handler(query: Query): void
  reject(error: Error): void
  state: object | null
}

/** A statement that has no answer yet. */
interface Statement {
  readonly query: Query
  /** The driver's own handler of the query. */
  readonly send: (query: Query) => void
  /** Whose share of the connections the statement takes. Null for the service itself. */
  readonly key: string | null
  timer: NodeJS.Timeout | undefined
}

/** An open connection: its sockets, and the driver's object for it. */
interface Connection {
  link: Link
  state: object
}

/**
 * Returns the pool, which the caller must end. The pool opens connections one after the other when
 * statements need them, up to DATABASE_POOL_MAX. A connection has one statement in flight at a time.
 * So no statement is queued behind another one that waits for a lock while other connections are free.
 *
 * A statement is answered or rejected within ANSWER_TIMEOUT, and is never sent twice. If it rejects
 * with StatementNotSent, the server has never received it. If it rejects with a PostgresError that
 * the server itself has sent, the server has refused it. After any other error, which includes a
 * PostgresError from a pooler (see isOfPooler), the server may have executed it.
 *
 * The pool may cut a connection while the server still executes its statement. The server notices
 * this only when the statement ends, so it may have more sessions than DATABASE_POOL_MAX for a while.
 */
export function openPool(
  config: DatabaseConfig,
  log: Pick<FastifyBaseLogger, 'info' | 'error'>,
): Pool {
  const { hosts, tls } = config.DATABASE_URL
  const size = config.DATABASE_POOL_MAX
  const queue = createQueue<Statement>(Math.max(1, Math.floor(size / 2)))
  /** The statements in flight, each on a connection of its own. */
  const running: Statement[] = []
  const connections: Connection[] = []
  /** The link of the last attempt to open a connection. The driver opens all its sockets with it. */
  let link = newLink(0)
  /** The attempt to open a connection that has not ended yet. */
  let attempt: Promise<void> | undefined
  /** The error of the last attempt to open a connection. Undefined if that attempt succeeded. */
  let lastFailure: Error | undefined
  /** The timer of the pause after a failed attempt. While it runs, no connection is opened. */
  let pause: NodeJS.Timeout | undefined
  /** The host of the last connection that was opened. */
  let primary: Host | undefined
  let isLost = false
  let isEnded = false
  const driver = openDriver(config, () => link.open())

  /** Returns the tag for the statements of `key`. */
  function tagOf(key: string | null): Sql {
    const tag = (strings: TemplateStringsArray, ...values: never[]) => {
      const query = driver(strings, ...values) as Query
      const statement: Statement = { query, send: query.handler, key, timer: undefined }
      query.handler = () => wait(statement)
      return query
    }
    return Object.assign(tag as unknown as Sql, { json: driver.json })
  }

  function wait(statement: Statement) {
    const { query } = statement
    if (isEnded) return query.reject(new StatementNotSent(poolEnded()))
    if (!queue.add(statement)) return query.reject(new Failure('busy'))
    statement.timer = setTimeout(giveUp, SEND_TIMEOUT, statement)
    sendWaiting()
  }

  /** Rejects a statement that still waits. One that was sent gets the rest of ANSWER_TIMEOUT. */
  function giveUp(statement: Statement) {
    const reason = lastFailure ?? new Error('no connection became free in time')
    if (refuse(statement, reason)) return
    statement.timer = setTimeout(expire, ANSWER_TIMEOUT - SEND_TIMEOUT, statement)
  }

  function expire({ query }: Statement) {
    query.reject(new DatabaseTimeout())
  }

  /** Rejects a statement that still waits. Returns false if it does not wait any more. */
  function refuse(statement: Statement, reason: Error) {
    if (!queue.remove(statement)) return false
    clearTimeout(statement.timer)
    statement.query.reject(new StatementNotSent(reason))
    return true
  }

  /** Sends waiting statements over the free connections. Opens a connection if one more is needed. */
  function sendWaiting() {
    // The driver uses a connection until its socket has closed. A statement that it sends over a
    // socket that is closing would be lost.
    const isClosing = link.isClosing() || connections.some((each) => each.link.isClosing())
    if (isClosing) return

    while (running.length < connections.length) {
      const statement = queue.take()
      if (!statement) return
      send(statement)
    }
    const mayConnect = !attempt && !pause && !isEnded && connections.length < size
    if (mayConnect && queue.hasNext()) attempt = connect()
  }

  function send(statement: Statement) {
    const { query } = statement
    running.push(statement)
    query.then(
      () => finish(statement),
      (error) => {
        finish(statement, error)
      },
    )
    statement.send(query)
  }

  /** Called when a statement in flight was answered, or has failed with `error`. */
  function finish(statement: Statement, error?: unknown) {
    clearTimeout(statement.timer)
    remove(statement, running)
    queue.finish(statement)
    if (error !== undefined) {
      const { state } = statement.query
      const isUsable = isReusableAfter(error)
      const isAlone = isOfStatementAlone(error)
      if (!isUsable) cut((each) => each.state === state)
      // The idle connections may be unusable as well.
      if (!isAlone) cut((each) => !running.some(({ query }) => query.state === each.state))
    }
    sendWaiting()
  }

  function cut(isAffected: (connection: Connection) => boolean) {
    for (const connection of connections.filter(isAffected)) connection.link.cut()
  }

  function newLink(hostIndex: number): Link {
    const host = hosts[hostIndex % hosts.length]
    if (!host) throw new Error('DATABASE_URL names no host')
    const created = createLink(host, tls, () => onClosed(created))
    return created
  }

  /**
   * Rejects the statement that was sent over the closed link. If the driver has sent it after the
   * loss and before the close, the driver itself never rejects it.
   */
  function onClosed(closed: Link) {
    const connection = connections.find((each) => each.link === closed)
    if (connection) {
      remove(connection, connections)
      const lost = running.find(({ query }) => query.state === connection.state)
      lost?.query.reject(connectionLost())
    }
    // The driver notices the close in a later listener of the same event.
    queueMicrotask(sendWaiting)
  }

  /** Opens one connection, with a statement of the pool's own. */
  async function connect() {
    link = newLink(hosts.indexOf(link.host))
    try {
      const state = await requirePrimary(driver)
      link.keep()
      onConnected({ link, state })
    } catch (error) {
      link.cut()
      onFailedAttempt(error as Error)
    }
    attempt = undefined
    sendWaiting()
  }

  function onConnected(connection: Connection) {
    const { host } = connection.link
    connections.push(connection)
    lastFailure = undefined
    const isOther = primary !== undefined && primary !== host
    if (isLost || isOther) log.info(host, 'the database serves again')
    isLost = false
    primary = host
  }

  function onFailedAttempt(error: Error) {
    const { host } = link
    lastFailure = error
    if (connections.length === 0 && primary && !isLost) {
      isLost = true
      log.error({ ...host, err: error }, 'the database is lost')
    }
    link = newLink(hosts.indexOf(host) + 1)
    pause = setTimeout(endPause, RETRY_PAUSE)
  }

  function endPause() {
    pause = undefined
    sendWaiting()
  }

  async function end() {
    isEnded = true
    clearTimeout(pause)
    for (const statement of queue.waiting()) refuse(statement, poolEnded())
    await attempt
    await driver.end({ timeout: 1 })
    cut(() => true)
  }

  return Object.assign(tagOf(null), {
    share: tagOf,
    usage: () => ({ running: running.length, waiting: queue.waiting().length }),
    end,
  })
}

/** Removes the element from the array, if the array contains it. */
function remove<T>(element: T, array: T[]) {
  const index = array.indexOf(element)
  if (index >= 0) array.splice(index, 1)
}

const poolEnded = () => new Error('the pool has ended')

/**
 * Returns whether the connection can be used again after this error. With postgres.js 3.4.9 it
 * cannot if the server sent rows before the error: the driver does not reset its row counter, so
 * the next result begins with empty entries.
 *
 * The server sends no rows before it reports a violated constraint (class 23) or an error that our own
 * functions raise (LL401, LL403), because every write is one call of a function that returns one value.
 */
const isReusableAfter = (error: unknown) => isPostgresError(error) && /^(23|LL)/.test(error.code)

/**
 * Returns whether the error concerns its statement alone. In three cases the other connections may be
 * unusable as well: the server has ended the session (FATAL), the server has become read-only (25006),
 * or a pooler has lost the server.
 */
const isOfStatementAlone = (error: unknown) =>
  isPostgresError(error) &&
  error.severity === 'ERROR' &&
  error.code !== '25006' &&
  !isOfPooler(error)
