import type { FastifyBaseLogger } from 'fastify'
import {
  CONNECT_TIMEOUT,
  type Connection,
  type DatabaseConfig,
  openConnection,
} from './connection.js'
import { watchOutages } from './outage.js'
import {
  DatabaseTimeout,
  isPostgresError,
  Json,
  type Sql,
  Statement,
  StatementNotSent,
  type Template,
  type Value,
} from './sql.js'

/** The most time from the call of a statement to its answer, in milliseconds. */
const ANSWER_TIMEOUT = 4500
/** The most time that a statement waits for a connection; it covers one attempt to open one. */
const SEND_TIMEOUT = CONNECT_TIMEOUT + 500
/** The pause after a connection could not be opened, in milliseconds. */
const RETRY_PAUSE = 100

/** The one pool of connections to the primary. */
export interface Pool extends Sql {
  /** How many statements are sent and unanswered, and how many wait for a connection. */
  usage(): { running: number; waiting: number }
  /** Closes all connections. Statements that come later are not sent. */
  end(): Promise<void>
}

/** A statement that has been called and has not been answered yet. */
interface Task {
  readonly template: Template
  readonly resolve: (rows: unknown) => void
  readonly reject: (error: unknown) => void
  /** When it was called, as performance.now() has it; 0 if it never waited. */
  calledAt: number
  timer: NodeJS.Timeout | undefined
}

/**
 * Opens the pool, which the caller ends. The pool opens connections when statements need them, up
 * to DATABASE_POOL_MAX. A connection works on one statement at a time, so that no statement queues
 * behind one that waits for a lock while another connection is free.
 *
 * A statement is answered or rejected within ANSWER_TIMEOUT, and is never sent twice. A
 * StatementNotSent means that the server has never seen it. After any other error that is not the
 * server's own the server may have carried it out. A session whose connection was cut ends when the
 * server notices, so the server may count a few more sessions for a while.
 */
export function openPool(
  config: DatabaseConfig,
  log: Pick<FastifyBaseLogger, 'info' | 'error'>,
): Pool {
  const { hosts } = config.DATABASE_URL
  const idle: Connection[] = []
  const busy = new Map<Connection, Task>()
  const waiting = new Set<Task>()
  const outage = watchOutages(log)
  /** The attempts to open a connection that are in progress. */
  const attempts = new Set<Promise<void>>()
  let hostIndex = 0
  /** Why the last attempt to open a connection failed; undefined after a successful one. */
  let lastFailure: Error | undefined
  let pause: NodeJS.Timeout | undefined
  let isEnded = false

  function ask(template: Template): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const task: Task = { template, resolve, reject, calledAt: 0, timer: undefined }
      const connection = isEnded ? undefined : idle.pop()
      if (connection) send(task, connection, ANSWER_TIMEOUT)
      else wait(task)
    })
  }

  function wait(task: Task) {
    if (isEnded) return refuse(task, poolEnded())
    task.calledAt = performance.now()
    task.timer = setTimeout(giveUp, SEND_TIMEOUT, task)
    waiting.add(task)
    openConnections()
  }

  function giveUp(task: Task) {
    refuse(task, lastFailure ?? new Error('no connection became free in time'))
  }

  function refuse(task: Task, reason: Error) {
    waiting.delete(task)
    clearTimeout(task.timer)
    task.reject(new StatementNotSent(reason))
  }

  function send(task: Task, connection: Connection, timeout: number) {
    task.timer = setTimeout(expire, timeout, task, connection)
    busy.set(connection, task)
    connection.send(task.template).then(
      (rows) => {
        if (!finish(task, connection)) return
        task.resolve(rows)
        release(connection)
      },
      (error) => {
        if (!finish(task, connection)) return
        task.reject(error)
        if (isReusableAfter(error)) return release(connection)
        connection.cut()
        if (!isOfStatementAlone(error)) cutIdle()
        openConnections()
      },
    )
  }

  /** Takes `task` off `connection`. Returns false if a timeout or a loss did so before. */
  function finish(task: Task, connection: Connection) {
    if (busy.get(connection) !== task) return false
    clearTimeout(task.timer)
    busy.delete(connection)
    return true
  }

  function expire(task: Task, connection: Connection) {
    finish(task, connection)
    task.reject(new DatabaseTimeout())
    connection.cut()
    cutIdle()
    openConnections()
  }

  /** Gives a connection to the statement that has waited longest; it is idle when none waits. */
  function release(connection: Connection) {
    const [task] = waiting
    if (isEnded) return
    if (!task) {
      idle.push(connection)
      return
    }
    waiting.delete(task)
    clearTimeout(task.timer)
    send(task, connection, task.calledAt + ANSWER_TIMEOUT - performance.now())
  }

  /** A connection was lost, and not cut by this pool. */
  function onLost(connection: Connection, error: Error) {
    const task = busy.get(connection)
    const index = idle.indexOf(connection)
    if (index >= 0) idle.splice(index, 1)
    if (task && finish(task, connection)) task.reject(error)
    if (task || index >= 0) cutIdle()
    openConnections()
  }

  /** After a lost connection the idle ones may be dead too, without a sign of it. */
  function cutIdle() {
    for (const connection of idle.splice(0)) connection.cut()
  }

  /** Opens as many connections as statements wait for, within the size of the pool. */
  function openConnections() {
    if (pause || isEnded) return
    const free = config.DATABASE_POOL_MAX - idle.length - busy.size - attempts.size
    const needed = waiting.size - attempts.size
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
      const connection = await openConnection(config, host, { hasLimits: true, onLost })
      lastFailure = undefined
      outage.onServing(host)
      if (isEnded) await connection.end()
      else release(connection)
    } catch (error) {
      lastFailure = error as Error
      const isLost = idle.length + busy.size === 0
      if (isLost) outage.onLost(host, lastFailure)
      if (host === hosts[hostIndex]) hostIndex = (hostIndex + 1) % hosts.length
      if (isLost && isFinal(lastFailure)) for (const task of waiting) giveUp(task)
      pause ??= setTimeout(endPause, RETRY_PAUSE)
    }
  }

  function endPause() {
    pause = undefined
    openConnections()
  }

  async function end() {
    isEnded = true
    clearTimeout(pause)
    for (const task of waiting) refuse(task, poolEnded())
    await Promise.all(attempts)
    await Promise.all([...idle.splice(0), ...busy.keys()].map((connection) => connection.end()))
  }

  const tag = <Rows>(strings: TemplateStringsArray, ...values: Value[]) =>
    new Statement<Rows>(strings, values, ask)

  return Object.assign(tag as Sql, {
    json: (value: object) => new Json(value),
    usage: () => ({ running: busy.size, waiting: waiting.size }),
    end,
  })
}

const poolEnded = () => new Error('the pool has ended')

/**
 * Whether the connection can be used again after this error. With postgres.js 3.4.9 it cannot when
 * the server had sent rows before the error: the driver does not reset its row counter, and the next
 * result begins with holes. Violated constraints (class 23) and the refusals of our functions (LL401,
 * LL403) come before any row, because every write is one call of a function that returns one value.
 */
const isReusableAfter = (error: unknown) => isPostgresError(error) && /^(23|LL)/.test(error.code)

/**
 * Whether the error concerns this statement alone. When the server ended the session (FATAL) or is
 * read-only (25006), the other connections are suspect as well.
 */
const isOfStatementAlone = (error: unknown) =>
  isPostgresError(error) && error.severity === 'ERROR' && error.code !== '25006'

/**
 * Whether another attempt to connect is pointless. It is not when the server has too many connections
 * (class 53), or is starting up or shutting down (57P).
 */
const isFinal = (error: unknown) => isPostgresError(error) && !/^(53|57P)/.test(error.code)
