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

/** From the call of a statement to its answer, at the most, in milliseconds. */
const ANSWER_TIMEOUT = 4500
/** From the call of a statement until it is sent, at the most, in milliseconds. */
const SEND_TIMEOUT = ANSWER_TIMEOUT - CONNECT_TIMEOUT
/** The pause after a connection could not be opened, in milliseconds. */
const RETRY_PAUSE = 100

/** The one pool of connections to the primary. */
export interface Pool extends Sql {
  /** How many statements the server works on, and how many wait for a connection. */
  usage(): { running: number; waiting: number }
  /** Closes all connections. Statements that come later are not sent. */
  end(): Promise<void>
}

/** A statement that has been called and has not been answered yet. */
interface Task {
  readonly template: Template
  readonly resolve: (rows: unknown) => void
  readonly reject: (error: unknown) => void
  /** When it was called; known of those that had to wait. */
  calledAt: number
  timer: NodeJS.Timeout | undefined
}

/**
 * Opens the pool, which the caller ends. The pool opens connections when statements need them, up
 * to DATABASE_POOL_MAX. A connection works on one statement at a time, so that no statement queues
 * behind one that waits for a lock while another connection is free.
 *
 * A statement is answered or rejected within ANSWER_TIMEOUT, and is never sent twice. A
 * StatementNotSent means that the server has never seen it. After a DatabaseTimeout or a lost
 * connection the server may have carried it out.
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
  let opening = 0
  let hostIndex = 0
  /** Why the last attempt to open a connection failed; undefined after a successful one. */
  let lastFailure: Error | undefined
  let pause: NodeJS.Timeout | undefined
  let isEnded = false

  function ask(template: Template): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const task: Task = { template, resolve, reject, calledAt: 0, timer: undefined }
      const connection = idle.pop()
      if (connection) send(task, connection, ANSWER_TIMEOUT)
      else wait(task)
    })
  }

  function wait(task: Task) {
    if (isEnded) return giveUp(task)
    task.calledAt = performance.now()
    task.timer = setTimeout(giveUp, SEND_TIMEOUT, task)
    waiting.add(task)
    openConnections()
  }

  function giveUp(task: Task) {
    waiting.delete(task)
    clearTimeout(task.timer)
    task.reject(new StatementNotSent(lastFailure))
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

  /** Ends the work of `connection` on `task`; false if it has ended before, by time or by a loss. */
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

  /** Gives a connection to the statement that has waited longest. */
  function release(connection: Connection) {
    const [task] = waiting
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
    const free = config.DATABASE_POOL_MAX - idle.length - busy.size - opening
    const needed = waiting.size - opening
    for (let count = Math.min(free, needed); count > 0; count -= 1) void open()
  }

  async function open() {
    const host = hosts[hostIndex]
    if (!host) throw new Error('DATABASE_URL names no host')
    opening += 1
    try {
      const connection = await openConnection(config, host, { isLimited: true, onLost })
      opening -= 1
      lastFailure = undefined
      outage.serves(host)
      if (isEnded) await connection.end()
      else release(connection)
    } catch (error) {
      opening -= 1
      lastFailure = error as Error
      if (idle.length + busy.size === 0) outage.lost(host, lastFailure)
      if (host === hosts[hostIndex]) hostIndex = (hostIndex + 1) % hosts.length
      if (isFinal(lastFailure)) for (const task of waiting) giveUp(task)
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
    for (const task of waiting) giveUp(task)
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

/**
 * Whether a connection is as good as new after this error. In postgres.js 3.4.9 it is not when the
 * server had sent rows before the error: the driver does not reset its row counter, and the next
 * result begins with holes. Violated constraints (class 23) and the refusals of our own functions
 * (LL401, LL403) come before any row.
 */
const isReusableAfter = (error: unknown) => isPostgresError(error) && /^(23|LL)/.test(error.code)

/** Whether the error says nothing about other connections: not of one that ended or is read-only. */
const isOfStatementAlone = (error: unknown) =>
  isPostgresError(error) && error.severity === 'ERROR' && error.code !== '25006'

/** Whether the server will refuse the next connection too: not one that is full or starting. */
const isFinal = (error: unknown) => isPostgresError(error) && !/^(53|57P)/.test(error.code)
