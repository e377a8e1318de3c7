import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { PendingQuery, Row } from 'postgres'
import { Failure } from '../http/answers/failures.js'
import { type DatabaseConfig, openDriver, requirePrimary } from './connection.js'
import { CONNECT_TIMEOUT, connectionLost, createLink, type Host, type Link } from './link.js'
import { createQueue, type Line } from './queue.js'
import {
  ANSWER_TIMEOUT,
  DatabaseTimeout,
  isPostgresError,
  type Sql,
  StatementNotSent,
} from './sql.js'

/**
 * How long a statement may wait for a connection, in milliseconds. This is long enough for at least one
 * attempt to open a connection.
 */
const SEND_TIMEOUT = CONNECT_TIMEOUT + 500
/** How many statements of one key may wait. */
const MAX_WAITING = 64
/** How long the pool waits after a failed attempt to open a connection, in milliseconds. */
const RETRY_PAUSE = 100

/** The pool of connections to the primary. */
export interface Pool extends Sql {
  /**
   * Returns the pool for the statements of `key`. Together they get at most half of the connections,
   * but at least one. Further ones wait, and the keys with waiting statements take turns. If too many
   * of one key wait already, a statement rejects with the Failure `busy`.
   */
  share(key: number): Sql
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
  readonly line: Line<Statement>
  timer: NodeJS.Timeout | undefined
}

/**
 * Returns the pool, which the caller must end. The pool opens connections one after the other when
 * statements need them, up to DATABASE_POOL_MAX. A connection has one statement in flight at a time.
 * So no statement is queued behind another one that waits for a lock while other connections are free.
 *
 * A statement is answered or rejected within ANSWER_TIMEOUT, and is never sent twice. If it rejects
 * with StatementNotSent or the Failure `busy`, the server has never received it. If it rejects with a
 * PostgresError that the server itself has sent, the server has refused it. After any other error,
 * which includes a PostgresError from a pooler (see isOfPooler), the server may have executed it.
 *
 * The pool may cut a connection while the server still executes its statement. The server notices
 * this only when the statement ends, so it may have more sessions than DATABASE_POOL_MAX for a while.
 */
export function openPool(
  config: DatabaseConfig,
  log: Pick<FastifyBaseLogger, 'info' | 'error'>,
): Pool {
  const { DATABASE_POOL_MAX: size, DATABASE_URL } = config
  const queue = createQueue<Statement>(Math.max(1, Math.floor(size / 2)))
  /** The statements in flight, each on a connection of its own. */
  const running: Statement[] = []
  /** The links of the open connections. */
  const connections: Link[] = []
  /** The hosts. The first one is the host for the next connection. */
  const hosts = [...DATABASE_URL.hosts]
  /** The link of the last attempt to open a connection. The driver opens all its sockets with it. */
  let link = newLink()
  /** The attempt to open a connection that has not ended yet. */
  let attempt: Promise<void> | undefined
  /** The error of the last attempt to open a connection. Undefined if that attempt succeeded. */
  let lastFailure: Error | undefined
  /** The host of the last connection that was opened. */
  let primary: Host | undefined
  let isLost = false
  let isEnded = false
  const driver = openDriver(config, () => link.open())

  /** Returns the tag for the statements of `key`. */
  function share(key: number | null): Sql {
    const tag = (strings: TemplateStringsArray, ...values: never[]) => {
      const query = driver(strings, ...values) as Query
      const { handler } = query
      query.handler = () =>
        wait({ query, send: handler, line: queue.lineOf(key), timer: undefined })
      return query
    }
    return Object.assign(tag as unknown as Sql, { json: driver.json })
  }

  function wait(statement: Statement) {
    const { line } = statement
    if (isEnded) return refuse(statement, poolEnded())
    const isBusy = line.key !== null && line.waiting.length >= MAX_WAITING
    if (isBusy) return refuse(statement, new Failure('busy'))
    statement.timer = setTimeout(giveUp, SEND_TIMEOUT, statement)
    line.waiting.push(statement)
    sendWaiting()
  }

  /**
   * Rejects a statement that still waits. If connections can be opened, they are all in use, so the
   * Failure is `busy`. A statement that was sent gets the rest of ANSWER_TIMEOUT.
   */
  function giveUp(statement: Statement) {
    const { query } = statement
    if (running.includes(statement)) {
      const expire = () => query.reject(new DatabaseTimeout())
      statement.timer = setTimeout(expire, ANSWER_TIMEOUT - SEND_TIMEOUT)
    } else {
      refuse(statement, lastFailure ? new StatementNotSent(lastFailure) : new Failure('busy'))
    }
  }

  /** Rejects a statement that was not sent. */
  function refuse({ line, query, timer }: Statement, error: Error) {
    clearTimeout(timer)
    line.waiting = line.waiting.filter((each) => each.query !== query)
    query.reject(error)
  }

  /** Sends waiting statements over the free connections. Opens a connection if one more is needed. */
  function sendWaiting() {
    // The driver uses a connection until its socket has closed. A statement that it sends over a
    // socket that is closing would be lost.
    if ([link, ...connections].some(({ isClosing }) => isClosing())) return

    while (running.length < connections.length) {
      const statement = queue.take()
      if (!statement) return
      send(statement)
    }
    const mayConnect = !attempt && !isEnded && connections.length < size
    if (mayConnect && queue.hasNext()) attempt = connect()
  }

  function send(statement: Statement) {
    const { query, line } = statement
    running.push(statement)
    line.running += 1
    query.catch(cutAfter).then(() => {
      clearTimeout(statement.timer)
      remove(statement, running)
      line.running -= 1
      sendWaiting()
    })
    statement.send(query)

    /** Cuts the connection of the failed statement. The idle ones may be unusable as well. */
    function cutAfter(error: unknown) {
      if (isReusableAfter(error)) return
      const others = running.filter((each) => each !== statement)
      const used = others.map((each) => each.query.state)
      for (const each of connections) {
        if (!used.includes(each.state)) each.cut()
      }
    }
  }

  function newLink() {
    const [host] = hosts
    if (!host) throw new Error('DATABASE_URL names no host')
    const created = createLink(host, DATABASE_URL.tls, () => onClosed(created))
    return created
  }

  /**
   * Rejects the statement that was sent over the closed link. If the driver has sent it after the
   * loss and before the close, the driver itself never rejects it.
   */
  function onClosed(closed: Link) {
    remove(closed, connections)
    for (const { query } of running) {
      if (query.state === closed.state) query.reject(connectionLost())
    }
    // The driver notices the close in a later listener of the same event.
    queueMicrotask(sendWaiting)
  }

  /** Opens one connection, with a statement of the pool's own. Waits for a moment if this fails. */
  async function connect() {
    link = newLink()
    try {
      link.state = await requirePrimary(driver)
      link.keep()
      onConnected()
    } catch (error) {
      link.cut()
      onFailure(error as Error)
      await sleep(RETRY_PAUSE)
    }
    attempt = undefined
    sendWaiting()
  }

  function onConnected() {
    const { host } = link
    connections.push(link)
    lastFailure = undefined
    const isOther = primary !== undefined && primary !== host
    if (isLost || isOther) log.info(host, 'the database serves again')
    isLost = false
    primary = host
  }

  function onFailure(error: Error) {
    lastFailure = error
    hosts.push(...hosts.splice(0, 1))
    // Otherwise a connection that is open, or another host, may still serve.
    const isHopeless = connections.length === 0 && hosts.length === 1 && isLasting(error)
    if (isHopeless) {
      for (const statement of queue.waiting()) refuse(statement, new StatementNotSent(error))
    }
    if (isLost || !primary || connections.length > 0) return
    isLost = true
    log.error({ ...link.host, err: error }, 'the database is lost')
  }

  async function end() {
    isEnded = true
    for (const statement of queue.waiting()) refuse(statement, poolEnded())
    await attempt
    await driver.end({ timeout: 1 })
    for (const { cut } of connections) cut()
  }

  return Object.assign(share(null), {
    share,
    usage: () => ({ running: running.length, waiting: queue.waiting().length }),
    end,
  })
}

/**
 * Returns whether the server refuses connections for a reason that does not pass by itself, such as an
 * unknown database. Too many connections (53) and a server that starts or stops (57P) pass.
 */
const isLasting = (error: unknown) => isPostgresError(error) && !/^(53|57P)/.test(error.code)

/** Removes the element from the array, if the array contains it. */
function remove<T>(element: T, array: T[]) {
  const index = array.indexOf(element)
  if (index >= 0) array.splice(index, 1)
}

const poolEnded = () => new StatementNotSent(new Error('the pool has ended'))

/**
 * Returns whether the connection can be used again after this error. With postgres.js 3.4.9 it
 * cannot if the server sent rows before the error: the driver does not reset its row counter, so
 * the next result begins with empty entries.
 *
 * The server sends no rows before it reports a violated constraint (class 23) or an error that our own
 * functions raise (LL401, LL403, LL412), because every write is one call of a function that returns one value.
 */
const isReusableAfter = (error: unknown) => isPostgresError(error) && /^(23|LL)/.test(error.code)
