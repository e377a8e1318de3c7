import type { FastifyBaseLogger } from 'fastify'
import {
  CONNECT_TIMEOUT,
  type Connection,
  type DatabaseConfig,
  openConnection,
} from './connection.js'
import { watchOutages } from './outage.js'
import type { Host } from './socket.js'
import {
  ANSWER_TIMEOUT,
  DatabaseTimeout,
  isOfPooler,
  isPostgresError,
  Json,
  type Sql,
  Statement,
  StatementNotSent,
  type Template,
  type Value,
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
  /** Returns how many statements are in flight, and how many wait for a connection. */
  usage(): { running: number; waiting: number }
  /**
   * Closes all connections. Statements that are still waiting or come later reject with
   * StatementNotSent.
   */
  end(): Promise<void>
}

/** A statement that has no answer yet. */
interface Task {
  readonly template: Template
  readonly resolve: (rows: unknown) => void
  readonly reject: (error: unknown) => void
  /** The time when the statement began to wait, as performance.now(). 0 if it never waited. */
  waitingSince: number
  /** The connection on which the statement was sent. Undefined until it is sent. */
  connection: Connection | undefined
  timer: NodeJS.Timeout | undefined
}

/**
 * Returns the pool, which the caller must end. The pool opens connections when statements need
 * them, up to DATABASE_POOL_MAX. A connection has one statement in flight at a time. So no
 * statement is queued behind another one that waits for a lock while other connections are free.
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
  const { hosts } = config.DATABASE_URL
  const idle: Connection[] = []
  // The next two are arrays because a Map or a Set would slow down the garbage collector
  // (docs/architecture.md, "Tried and rejected").
  /** The statements in flight, each on a connection of its own. */
  const running: Task[] = []
  /** The statements that wait for a connection, oldest first. */
  const waiting: Task[] = []
  const outage = watchOutages(log)
  /** The attempts to open a connection that have not ended yet. */
  const attempts = new Set<Promise<void>>()
  /** The index of the host for the next attempt. */
  let hostIndex = 0
  /** The error of the last attempt to open a connection. Undefined if that attempt succeeded. */
  let lastFailure: Error | undefined
  /** The timer of the pause after a failed attempt. While it runs, no connection is opened. */
  let pause: NodeJS.Timeout | undefined
  let isEnded = false

  function query(template: Template): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const task: Task = {
        template,
        resolve,
        reject,
        waitingSince: 0,
        connection: undefined,
        timer: undefined,
      }
      const connection = isEnded ? undefined : idle.pop()
      if (connection) send(task, connection, ANSWER_TIMEOUT)
      else wait(task)
    })
  }

  function wait(task: Task) {
    if (isEnded) return refuse(task, poolEnded())
    task.waitingSince = performance.now()
    task.timer = setTimeout(giveUp, SEND_TIMEOUT, task)
    waiting.push(task)
    openConnections()
  }

  /** Rejects a waiting statement because it has got no connection. */
  function giveUp(task: Task) {
    refuse(task, lastFailure ?? new Error('no connection became free in time'))
  }

  function refuse(task: Task, reason: Error) {
    remove(task, waiting)
    clearTimeout(task.timer)
    task.reject(new StatementNotSent(reason))
  }

  function send(task: Task, connection: Connection, timeout: number) {
    task.timer = setTimeout(expire, timeout, task, connection)
    task.connection = connection
    running.push(task)
    connection.send(task.template).then(
      (rows) => {
        if (!finish(task)) return
        task.resolve(rows)
        release(connection)
      },
      (error) => {
        if (!finish(task)) return
        task.reject(error)
        if (isReusableAfter(error)) return release(connection)
        connection.cut()
        if (!isOfStatementAlone(error)) cutIdle()
        openConnections()
      },
    )
  }

  /**
   * Ends a statement in flight. Returns false if a timeout or the loss of the connection has ended it
   * before.
   */
  function finish(task: Task) {
    if (!remove(task, running)) return false
    clearTimeout(task.timer)
    return true
  }

  function expire(task: Task, connection: Connection) {
    finish(task)
    task.reject(new DatabaseTimeout())
    connection.cut()
    cutIdle()
    openConnections()
  }

  /** Sends the statement that has waited longest. If none waits, the connection becomes idle. */
  function release(connection: Connection) {
    const longestWaiting = waiting.shift()
    if (!longestWaiting) {
      idle.push(connection)
      return
    }
    clearTimeout(longestWaiting.timer)
    const waited = performance.now() - longestWaiting.waitingSince
    send(longestWaiting, connection, ANSWER_TIMEOUT - waited)
  }

  /**
   * Called when `connection` is lost, and when `end` closes it. Not called after this pool has cut
   * it.
   */
  function onLost(connection: Connection, error: Error) {
    const task = running.find((each) => each.connection === connection)
    if (task && finish(task)) task.reject(error)

    const wasIdle = remove(connection, idle)
    if (task || wasIdle) cutIdle()
    openConnections()
  }

  /** Cuts the idle connections. They may be dead as well when another connection has failed. */
  function cutIdle() {
    for (const connection of idle.splice(0)) connection.cut()
  }

  /** Opens one connection for each waiting statement, up to the size of the pool. */
  function openConnections() {
    if (pause || isEnded) return
    const free = config.DATABASE_POOL_MAX - idle.length - running.length - attempts.size
    const needed = waiting.length - attempts.size
    for (let count = Math.min(free, needed); count > 0; count -= 1) {
      const attempt = open()
      attempts.add(attempt)
      void attempt.finally(() => attempts.delete(attempt))
    }
  }

  async function open() {
    const host = hosts[hostIndex]
    if (!host) throw new Error('DATABASE_URL names no host')
    try {
      const connection = await openConnection(config, host, { hasSettings: true, onLost })
      lastFailure = undefined
      outage.onServing(host)
      if (isEnded) await connection.end()
      else release(connection)
    } catch (error) {
      onFailedAttempt(host, error as Error)
    }
  }

  function onFailedAttempt(host: Host, error: Error) {
    lastFailure = error
    const isLost = idle.length + running.length === 0
    if (isLost) outage.onLost(host, error)

    // Of several attempts that fail at the same host, only the first one moves on to the next host.
    if (host === hosts[hostIndex]) hostIndex = (hostIndex + 1) % hosts.length

    // With several hosts, another one may still serve.
    const isHopeless = hosts.length === 1 && isFinal(error)
    if (isLost && isHopeless) {
      for (const task of [...waiting]) giveUp(task)
    }
    pause ??= setTimeout(endPause, RETRY_PAUSE)
  }

  function endPause() {
    pause = undefined
    openConnections()
  }

  async function end() {
    isEnded = true
    clearTimeout(pause)
    for (const task of [...waiting]) refuse(task, poolEnded())
    await Promise.all(attempts)
    const busy = running.map(({ connection }) => connection)
    const connections = [...idle.splice(0), ...busy]
    await Promise.all(connections.map((connection) => connection?.end()))
  }

  const tag = <Rows>(strings: TemplateStringsArray, ...values: Value[]) =>
    new Statement<Rows>(strings, values, query)

  return Object.assign(tag as Sql, {
    json: (value: object) => new Json(value),
    usage: () => ({ running: running.length, waiting: waiting.length }),
    end,
  })
}

/** Removes the element from the array. Returns false if the array does not contain it. */
function remove<T>(element: T, array: T[]) {
  const index = array.indexOf(element)
  if (index < 0) return false
  array.splice(index, 1)
  return true
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

/**
 * Returns whether the server refused a connection for a lasting reason, such as an unknown
 * database. Two reasons are not lasting: the server has too many connections (class 53), or it is
 * starting up or shutting down (57P). PgBouncer uses the same code for a setting that it refuses
 * and for a server that is down. This code counts as lasting, so that a replica with one host and
 * unsuitable settings says so at once.
 */
const isFinal = (error: unknown) => isPostgresError(error) && !/^(53|57P)/.test(error.code)
