import net, { type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import pLimit from 'p-limit'
import postgres, { type Options } from 'postgres'
import type { Config } from '../config.js'
import { DatabaseTimeout, isPostgresError, type Sql } from './sql.js'

/** In milliseconds: the most for a statement in the server, a new connection, and a query in all. */
const STATEMENT_TIMEOUT = 4000
const CONNECT_TIMEOUT = 2000
const QUERY_TIMEOUT = 4500
/** The pause before a query that could not be sent is tried again, in milliseconds. */
const RETRY_PAUSE = 100

export type DatabaseConfig = Pick<Config, 'DATABASE_URL' | 'DATABASE_POOL_MAX' | 'DATABASE_PREPARE'>

/** The one pool; `usage` says how many queries run and how many wait for a connection. */
export type Pool = Sql & { usage(): { running: number; waiting: number } }

const SETTINGS: Options<Record<string, never>> = {
  max: 1,
  fetch_types: false,
  connect_timeout: CONNECT_TIMEOUT / 1000,
  max_lifetime: null,
  target_session_attrs: 'primary',
  connection: { application_name: 'llavero' },
  onnotice: () => {},
}

/**
 * One connection to the primary, without time limits: for what takes long or begins transactions.
 * Throws with the reasons of all hosts when none is one. Whoever calls this ends it.
 */
export async function openConnection({ DATABASE_URL }: DatabaseConfig): Promise<Sql> {
  const { url, hosts } = DATABASE_URL
  const reasons: string[] = []
  for (const { host, port } of hosts) {
    // As lists, which its types leave out: in a text it takes an IPv6 address apart.
    const sql = postgres(url, Object.assign({ host: [host], port: [port] }, SETTINGS))
    const failure = await sql`select 1`.then(
      () => undefined,
      ({ code, message }) => (code === 'CONNECTION_DESTROYED' ? 'is a standby' : message),
    )
    if (!failure) return sql
    reasons.push(`${host}:${port} ${failure}`)
    await sql.end({ timeout: 0 })
  }
  throw new Error(`no host of the database serves: ${reasons.join('; ')}`)
}

/** `host` counts in the list of hosts. */
type Connection = { sql: Sql; host: number; made: number; close(): void }

/**
 * Opens the pool; whoever calls this ends it. A query is answered or rejects within QUERY_TIMEOUT,
 * waiting for a connection included; one that could not be sent is tried again, on the next host. After
 * a DatabaseTimeout or a lost connection the server may have carried it out. `log` is told which host
 * serves again after such failures.
 *
 * Each connection is a postgres.js instance of its own, thrown away with whatever befalls it: in
 * 3.4.9 a query that is sent while its connection is being reset resolves later, with no rows,
 * though the server never saw it (tests/pool.test.ts), and one of many can't be closed alone.
 */
export function openPool(config: DatabaseConfig, log: Pick<FastifyBaseLogger, 'info'>): Pool {
  const { url, hosts } = config.DATABASE_URL
  const isPrepared = config.DATABASE_PREPARE === 'true'
  const limit = pLimit(config.DATABASE_POOL_MAX)
  const open = new Set<Connection>()
  const idle = new Set<Connection>()
  let hostIndex = 0
  /** When a query has last succeeded, and on which host. */
  let served = { at: Infinity, host: 0 }
  /** Whether connections to that host that were made later have failed. */
  let isLost = false

  const settings: typeof SETTINGS = {
    ...SETTINGS,
    prepare: isPrepared,
    connection: {
      ...SETTINGS.connection,
      // A pooler that can't keep prepared statements refuses these as well.
      ...(isPrepared && {
        statement_timeout: STATEMENT_TIMEOUT,
        idle_in_transaction_session_timeout: STATEMENT_TIMEOUT,
        // In seconds: the server ends a session whose client is silently gone.
        tcp_keepalives_idle: 60,
        // Locks are taken first, and what they protect is read after: each statement anew.
        default_transaction_isolation: 'read committed',
      }),
    },
  }
  /** Makes fragments and names, and never connects. */
  const builder = postgres(url, settings)

  function connect(): Connection {
    const { host, port } = hosts[hostIndex] ?? {}
    let socket: Socket | undefined
    // postgres.js asks for the next one when it would reconnect.
    function openSocket() {
      if (socket) throw Object.assign(new Error('connection lost'), { code: 'ECONNREFUSED' })
      socket = net.connect(Number(port), host)
      return Object.assign(socket, { host, port })
    }
    function close() {
      open.delete(connection)
      idle.delete(connection)
      // A reset drops what is unsent: it must not arrive later, after a write that was answered.
      socket?.resetAndDestroy()
    }
    // Its types leave `socket` out.
    const options = Object.assign({ ...settings, host, onclose: close }, { socket: openSocket })
    const made = performance.now()
    const connection = { sql: postgres(url, options), host: hostIndex, made, close }
    open.add(connection)
    return connection
  }

  async function send<T>(query: (sql: Sql) => Promise<T>, deadline: number): Promise<T> {
    // It has waited for so long that there is no time left to connect.
    if (performance.now() > deadline - CONNECT_TIMEOUT) throw new DatabaseTimeout()
    const [connection = connect()] = idle
    const { host, made } = connection
    idle.delete(connection)
    try {
      const rows = await withDeadline(query(connection.sql), deadline)
      if (open.has(connection)) idle.add(connection)
      if (isLost && made > served.at) {
        log.info(hosts[host], 'the database serves again')
        isLost = false
      }
      if (!isLost) served = { at: performance.now(), host }
      return rows
    } catch (error) {
      if (isRefusal(error)) idle.add(connection)
      // With one lost the idle ones may be too; one that was never made says nothing of them.
      else for (const { close } of isUnsent(error) ? [connection] : [connection, ...idle]) close()
      if (isUnsent(error) && host === hostIndex) hostIndex = (hostIndex + 1) % hosts.length
      if (!isRefusal(error) && host === served.host && made > served.at) isLost = true
      throw error
    }
  }

  async function answer<T>(query: (sql: Sql) => Promise<T>): Promise<T> {
    const deadline = performance.now() + QUERY_TIMEOUT
    for (;;) {
      try {
        return await withDeadline(limit(send<T>, query, deadline), deadline)
      } catch (error) {
        const isTooLate = performance.now() + RETRY_PAUSE > deadline - CONNECT_TIMEOUT
        if (isTooLate || !(isUnsent(error) || isUndone(error))) throw error
        await sleep(RETRY_PAUSE)
      }
    }
  }

  /** As the tag of postgres.js: what it gives is a fragment, or a query that is sent when awaited. */
  function tag(strings: TemplateStringsArray, ...values: never[]) {
    const query = builder(strings, ...values)
    if (!(query instanceof Promise)) return query
    let answered: Promise<unknown> | undefined
    const ask = () => (answered ??= answer((sql) => sql(strings, ...values)))
    const then = (...handlers: Parameters<Promise<unknown>['then']>) => ask().then(...handlers)
    return Object.assign(query, { then, catch: (onError: () => unknown) => ask().catch(onError) })
  }

  return Object.assign(tag as unknown as Sql, {
    json: builder.json,
    end: async () => {
      await Promise.all([...open].map(({ sql }) => sql.end({ timeout: 1 })))
    },
    usage: () => ({ running: limit.activeCount, waiting: limit.pendingCount }),
  })
}

/** `answer`, or a DatabaseTimeout at the deadline, by default that of a query that begins now. */
export async function withDeadline<T>(
  answer: Promise<T>,
  deadline = performance.now() + QUERY_TIMEOUT,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DatabaseTimeout()), deadline - performance.now())
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}

/** Whether the server has refused a statement, on a connection that is as good as before. */
const isRefusal = (error: unknown) =>
  isPostgresError(error) && error.severity === 'ERROR' && error.code !== '25006'

/** No connection was made: unreachable, too slow, a standby (DESTROYED), starting, or full. */
const REFUSED = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']
const UNSENT = [...REFUSED, 'CONNECT_TIMEOUT', 'CONNECTION_DESTROYED', '57P03', '53300']
const isUnsent = (error: unknown) => UNSENT.includes((error as { code?: string }).code ?? '')

/** A write that was under way while a newer release altered the table whose row it gives back. */
const isUndone = (error: unknown) => isPostgresError(error) && error.code === '42804'
