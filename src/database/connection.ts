import net, { type Socket } from 'node:net'
import postgres, { type Options } from 'postgres'
import type { Config } from '../config.js'
import { type Host, startTls } from './socket.js'
import { type DriverSql, type Template, toDriverQuery } from './sql.js'

export type DatabaseConfig = Pick<Config, 'DATABASE_URL' | 'DATABASE_POOL_MAX' | 'DATABASE_PREPARE'>

/** The most that opening a connection may take, in milliseconds. */
export const CONNECT_TIMEOUT = 2000
/** PostgreSQL's `statement_timeout` for the connections of the pool, in milliseconds. */
const STATEMENT_TIMEOUT = 4000

/** Server settings for the connections of the pool. */
const LIMITS = {
  statement_timeout: STATEMENT_TIMEOUT,
  idle_in_transaction_session_timeout: STATEMENT_TIMEOUT,
  // After so many idle seconds the server probes the client, and ends the session if none answers.
  tcp_keepalives_idle: 60,
  // The write functions lock first and read afterwards. Under this level the reads see what other
  // transactions committed while the write waited for its locks.
  default_transaction_isolation: 'read committed',
} as const

/** An open connection to the primary. */
export interface Connection {
  /** The driver's own interface, with transactions. */
  readonly driver: DriverSql
  /** Sends one statement. The caller waits for its result before it sends the next one. */
  send(template: Template): PromiseLike<unknown>
  /** Resets the connection. Bytes that are not on the wire yet are dropped. */
  cut(): void
  /** Closes the connection when its statement has ended, or after a second. */
  end(): Promise<void>
}

interface ConnectionOptions {
  /** Whether to apply LIMITS; with DATABASE_PREPARE=false they are never applied. */
  hasLimits: boolean
  /** Called at most once, when an open connection is lost and `cut` was not called. */
  onLost?: (connection: Connection, error: Error) => void
}

/**
 * Opens a connection to `host`. Throws when the host does not answer within CONNECT_TIMEOUT,
 * refuses the connection, or is a standby.
 *
 * Each connection is a postgres.js instance of its own, with one socket. An instance reconnects by
 * itself, and in 3.4.9 a statement that is sent meanwhile resolves with no rows although the server
 * has never seen it (tests/pool.test.ts shows it). So `openSocket` throws when it is called again, and
 * a connection that loses its socket is discarded.
 */
export async function openConnection(
  config: DatabaseConfig,
  host: Host,
  { hasLimits, onLost }: ConnectionOptions,
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

  /** Discards the connection at the first of these events: no later statement would arrive. */
  function watch(watched: Socket) {
    watched.on('end', () => lose(connectionLost()))
    watched.on('error', lose)
    watched.on('close', () => lose(connectionLost()))
    return watched
  }

  const driver = postgres(
    url,
    // The types of postgres.js leave `socket` out.
    Object.assign(driverOptions(config, hasLimits), {
      ...host,
      // postgres.js does not decode the name that is in the address.
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

  let failOpening: (error: Error) => void = () => {}

  function lose(error: Error) {
    if (state === 'opening') failOpening(error)
    if (state === 'open') onLost?.(connection, error)
    cut()
  }

  function cut() {
    if (state === 'closed') return
    state = 'closed'
    // A reset drops the unsent bytes. A statement that was reported as failed must not be executed
    // after a later write was answered.
    tcp?.resetAndDestroy()
    // A reset waits for a socket that is still connecting.
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

function driverOptions({ DATABASE_PREPARE }: DatabaseConfig, hasLimits: boolean) {
  const isPrepared = DATABASE_PREPARE === 'true'
  const options: Options<Record<string, never>> = {
    max: 1,
    ssl: false,
    prepare: isPrepared,
    fetch_types: false,
    // openConnection has a timer of its own, which covers the first statement too.
    connect_timeout: 0,
    idle_timeout: 0,
    max_lifetime: null,
    onnotice: () => {},
    connection: {
      application_name: 'llavero',
      // A pooler that cannot keep prepared statements refuses these settings as well.
      ...(hasLimits && isPrepared && LIMITS),
    },
  }
  return options
}

/** Throws for a standby: it lags behind, and may still show a right that the primary revoked. */
async function requirePrimary(driver: DriverSql) {
  const [row] = await driver<[{ standby: boolean }]>`select pg_is_in_recovery() as standby`
  if (row.standby) throw new Error('the host is a standby')
}

const connectionLost = () =>
  Object.assign(new Error('the connection to the database was lost'), { code: 'CONNECTION_CLOSED' })

/**
 * Opens one connection to the first host that is a primary, without time limits: for migrations,
 * which take long and begin transactions. Throws with the reasons of all hosts when none is a
 * primary. Whoever calls this ends the connection.
 */
export async function openPrimary(config: DatabaseConfig): Promise<Connection> {
  const reasons: string[] = []
  for (const host of config.DATABASE_URL.hosts) {
    try {
      return await openConnection(config, host, { hasLimits: false })
    } catch (error) {
      reasons.push(`${host.host}:${host.port} ${(error as Error).message}`)
    }
  }
  throw new Error(`no host of the database serves: ${reasons.join('; ')}`)
}
