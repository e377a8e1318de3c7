import net, { type Socket } from 'node:net'
import postgres, { type Options } from 'postgres'
import type { Config } from '../config.js'
import { giveFastForms } from './fast-classes.js'
import { type Host, startTls } from './socket.js'
import { type DriverSql, type Template, toDriverQuery } from './sql.js'

export type DatabaseConfig = Pick<Config, 'DATABASE_URL' | 'DATABASE_POOL_MAX' | 'DATABASE_PREPARE'>

/** How long opening a connection may take, in milliseconds. */
export const CONNECT_TIMEOUT = 2000
/** PostgreSQL's `statement_timeout` for the connections of the pool, in milliseconds. */
const STATEMENT_TIMEOUT = 4000

/** PostgreSQL's settings for the connections of the pool. */
const SETTINGS = {
  statement_timeout: STATEMENT_TIMEOUT,
  idle_in_transaction_session_timeout: STATEMENT_TIMEOUT,
  // The server probes a client that has been silent for this long, in seconds. If the client does not
  // answer, the server ends the session.
  tcp_keepalives_idle: 60,
  // A function in sql/transactions locks rows first and reads afterwards. At this isolation level its
  // reads see what other transactions committed while it waited for its locks.
  default_transaction_isolation: 'read committed',
  // PostgreSQL's planner assumes that reading a page at random costs this many times as much as
  // reading the next page in sequence. The default of 4 is for hard disks. With this default,
  // PostgreSQL finds one row of a table with 200 rows by reading them all, also for each foreign
  // key that it checks.
  random_page_cost: 1.1,
} as const

/** An open connection to the primary. */
export interface Connection {
  /** The driver's own interface, which offers transactions. */
  readonly driver: DriverSql
  /** Sends one statement. The caller waits for its result before it sends the next one. */
  send(template: Template): PromiseLike<unknown>
  /** Closes the connection at once, with a reset. Bytes that were not sent yet are dropped. */
  cut(): void
  /** Closes the connection when its statement has ended, but after one second at the latest. */
  end(): Promise<void>
}

interface ConnectionOptions {
  /** Whether to apply SETTINGS. They are never applied if DATABASE_PREPARE is false. */
  hasSettings: boolean
  /**
   * Called at most once, when an open connection is lost or when `end` closes it. Not called after
   * `cut`.
   */
  onLost?: (connection: Connection, error: Error) => void
}

/**
 * Opens a connection to `host`. Throws if the host does not answer within CONNECT_TIMEOUT, refuses
 * the connection, or is a standby.
 *
 * Each connection is a postgres.js instance of its own, with one socket. By itself, an instance that
 * loses its socket would open another one. In postgres.js 3.4.9 a statement that is sent in the
 * meantime resolves with no rows, although the server has never received it (tests/pool.test.ts
 * shows this). So `openSocket` throws when postgres.js calls it again, and a connection that has lost
 * its socket is discarded.
 */
export async function openConnection(
  config: DatabaseConfig,
  host: Host,
  { hasSettings, onLost }: ConnectionOptions,
): Promise<Connection> {
  const { url, database, tls } = config.DATABASE_URL
  let tcp: Socket | undefined
  /** The socket that carries PostgreSQL's protocol: `tcp` itself, or the TLS socket on top of it. */
  let socket: Socket | undefined
  let state: 'opening' | 'open' | 'closed' = 'opening'

  async function openSocket() {
    if (tcp) throw connectionLost()
    tcp = watch(net.connect(host.port, host.host))
    socket = await startTls(tcp, host, tls)
    if (socket !== tcp) watch(socket)
    return socket
  }

  /**
   * Discards the connection when the socket ends, fails or closes, because no statement can be sent
   * afterwards.
   */
  function watch(watched: Socket) {
    watched.on('end', () => lose(connectionLost()))
    watched.on('error', lose)
    watched.on('close', () => lose(connectionLost()))
    return watched
  }

  const driver = postgres(
    url,
    // Object.assign is used because the types of postgres.js do not contain the option `socket`.
    Object.assign(driverOptions(config, hasSettings), {
      ...host,
      // postgres.js would keep the percent-encoding of the name in `url`.
      ...(database && { database }),
      socket: openSocket,
      onclose: () => lose(connectionLost()),
    }),
  )
  const connection: Connection = {
    driver,
    send: (template) => toDriverQuery(driver, template),
    cut,
    end,
  }

  /**
   * Rejects `opened` below, so that openConnection throws. It is set before the driver opens the
   * socket.
   */
  let failOpening: (error: Error) => void = () => {}

  /**
   * Discards the connection. While it is opening, openConnection throws `error`. Once it is open,
   * `onLost` is called with the connection and `error`.
   */
  function lose(error: Error) {
    if (state === 'opening') failOpening(error)
    if (state === 'open') onLost?.(connection, error)
    cut()
  }

  function cut() {
    if (state === 'closed') return
    state = 'closed'
    // A reset drops the bytes that were not sent yet. Otherwise a statement that was reported as failed
    // could still reach the server and be executed, even after a later write.
    tcp?.resetAndDestroy()
    // While the socket is connecting, resetAndDestroy only waits for the connection.
    if (tcp?.connecting) tcp.destroy()
    socket?.destroy()
  }

  async function end() {
    await driver.end({ timeout: 1 })
    cut()
  }

  const opened = new Promise<void>((resolve, reject) => {
    failOpening = reject
    requirePrimary(driver).then(resolve, reject)
  })
  const timer = setTimeout(() => lose(new Error('the host does not answer')), CONNECT_TIMEOUT)
  try {
    await opened
  } catch (error) {
    cut()
    throw error
  } finally {
    clearTimeout(timer)
  }
  state = 'open'
  return connection
}

function driverOptions({ DATABASE_PREPARE }: DatabaseConfig, hasSettings: boolean) {
  const isPrepared = DATABASE_PREPARE === 'true'
  const options: Options<Record<string, never>> = {
    max: 1,
    ssl: false,
    prepare: isPrepared,
    fetch_types: false,
    // openConnection has a timer of its own, which also covers the first statement.
    connect_timeout: 0,
    idle_timeout: 0,
    max_lifetime: null,
    onnotice: () => {},
    connection: {
      application_name: 'llavero',
      // PgBouncer refuses these settings, and in transaction mode it may not support prepared
      // statements. One variable turns off both.
      ...(hasSettings && isPrepared && SETTINGS),
    },
  }
  return options
}

/**
 * Throws if the host is a standby, where a permission may exist that the primary has revoked. This is
 * the first statement on the connection. So the driver's classes get V8's fast form here, before
 * further statements are sent.
 */
async function requirePrimary(driver: DriverSql) {
  const query = driver<[{ standby: boolean }]>`select pg_is_in_recovery() as standby`
  const rows = await query
  if (rows[0].standby) throw new Error('the host is a standby')
  giveFastForms(query, rows)
}

const connectionLost = () =>
  Object.assign(new Error('the connection to the database was lost'), { code: 'CONNECTION_CLOSED' })

/**
 * Opens one connection to the first host that is a primary. The connection has no SETTINGS, because
 * migrations may take long. The caller must end it. If openConnection fails for every host, throws an
 * error with the reason for each host.
 */
export async function openPrimary(config: DatabaseConfig): Promise<Connection> {
  const reasons: string[] = []
  for (const host of config.DATABASE_URL.hosts) {
    try {
      return await openConnection(config, host, { hasSettings: false })
    } catch (error) {
      reasons.push(`${host.host}:${host.port} ${(error as Error).message}`)
    }
  }
  throw new Error(`no host of the database serves: ${reasons.join('; ')}`)
}
