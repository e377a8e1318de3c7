import net, { type Socket } from 'node:net'
import postgres, { type Options } from 'postgres'
import type { Config } from '../config.js'
import { type Host, startTls } from './socket.js'
import { type DriverSql, type Template, toDriverQuery } from './sql.js'

export type DatabaseConfig = Pick<Config, 'DATABASE_URL' | 'DATABASE_POOL_MAX' | 'DATABASE_PREPARE'>

/** The most that opening a connection may take, in milliseconds. */
export const CONNECT_TIMEOUT = 2000
/** The most that the server works on one statement of the pool, in milliseconds. */
const STATEMENT_TIMEOUT = 4000

/** Server settings for the connections of the pool. */
const LIMITS = {
  statement_timeout: STATEMENT_TIMEOUT,
  idle_in_transaction_session_timeout: STATEMENT_TIMEOUT,
  // In seconds. The server ends the session of a client that is silently gone.
  tcp_keepalives_idle: 60,
  // A write takes its locks first; each later statement has to see what was committed until then.
  default_transaction_isolation: 'read committed',
} as const

/** An open connection to the primary. */
export interface Connection {
  /** The driver's own interface, with transactions. */
  readonly driver: DriverSql
  /** Sends one statement; the caller sends the next one after its end. */
  send(template: Template): PromiseLike<unknown>
  /** Cuts the connection. What has not reached the server by then never reaches it. */
  cut(): void
  /** Closes the connection after the statement in flight, at the latest after a second. */
  end(): Promise<void>
}

interface ConnectionOptions {
  /** Whether statements have the time limits of the pool. */
  isLimited: boolean
  /** Called at most once, when an open connection is lost and `cut` was not called. */
  onLost?: (connection: Connection, error: Error) => void
}

/**
 * Opens a connection to `host`. Throws when the host does not answer within CONNECT_TIMEOUT,
 * refuses the connection, or is a standby.
 *
 * Each connection is a postgres.js instance of its own, with one socket. An instance reconnects by
 * itself, and in 3.4.9 a statement that is sent meanwhile resolves with no rows although the server
 * has never seen it (tests/pool.test.ts shows it). So an instance that loses its socket gets no other.
 */
export async function openConnection(
  config: DatabaseConfig,
  host: Host,
  { isLimited, onLost }: ConnectionOptions,
): Promise<Connection> {
  const { url, tls } = config.DATABASE_URL
  let tcp: Socket | undefined
  /** The socket that carries PostgreSQL's protocol: the same, or the TLS socket above it. */
  let socket: Socket | undefined
  let state: 'opening' | 'open' | 'lost' = 'opening'

  async function openSocket() {
    if (tcp) throw connectionLost()
    tcp = watch(net.connect(host.port, host.host))
    socket = await startTls(tcp, host, tls)
    if (socket !== tcp) watch(socket)
    return Object.assign(socket, host)
  }

  /** A statement that is sent after the first of these events never reaches the server. */
  function watch(watched: Socket) {
    watched.on('end', () => lose(connectionLost()))
    watched.on('error', lose)
    watched.on('close', () => lose(connectionLost()))
    return watched
  }

  const driver = postgres(
    url,
    // The types of postgres.js leave `socket` out.
    Object.assign(driverOptions(config, isLimited), {
      ...host,
      socket: openSocket,
      onclose: () => lose(connectionLost()),
    }),
  )
  const connection: Connection = {
    driver,
    send: (template) => toDriverQuery(driver, template),
    cut,
    end: () => driver.end({ timeout: 1 }),
  }

  let failOpening: (error: Error) => void = () => {}

  function lose(error: Error) {
    if (state === 'opening') failOpening(error)
    if (state === 'open') onLost?.(connection, error)
    cut()
  }

  function cut() {
    if (state === 'lost') return
    state = 'lost'
    // A reset drops what is still unsent. It must not arrive after a later write was answered.
    tcp?.resetAndDestroy()
    socket?.destroy()
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

function driverOptions({ DATABASE_PREPARE }: DatabaseConfig, isLimited: boolean) {
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
      ...(isLimited && isPrepared && LIMITS),
    },
  }
  return options
}

/** Throws for a standby, whose rows may be older than a right that was taken away since. */
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
      return await openConnection(config, host, { isLimited: false })
    } catch (error) {
      reasons.push(`${host.host}:${host.port} ${(error as Error).message}`)
    }
  }
  throw new Error(`no host of the database serves: ${reasons.join('; ')}`)
}
