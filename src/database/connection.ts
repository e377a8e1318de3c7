import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import postgres, { type Options } from 'postgres'
import type { Config } from '../config.js'
import { createLink } from './link.js'
import type { DriverSql } from './sql.js'

export type DatabaseConfig = Pick<Config, 'DATABASE_URL' | 'DATABASE_POOL_MAX' | 'DATABASE_PREPARE'>

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

/** Returns the socket for a new connection. It must not throw. */
type OpenSocket = () => Promise<Socket | Writable>

/** The types of postgres.js lack `max_pipeline`. */
type DriverOptions = Options<Record<string, never>> & { max_pipeline?: number }

/** Returns the driver for the pool. It has at most one statement in flight on each connection. */
export const openDriver = (config: DatabaseConfig, socket: OpenSocket): DriverSql =>
  connect(config, socket, {
    max: config.DATABASE_POOL_MAX,
    max_pipeline: 0,
    // PgBouncer refuses the settings, and in transaction mode it may not support prepared statements.
    // One variable turns off both.
    ...(config.DATABASE_PREPARE === 'true' && { connection: SETTINGS }),
  })

/** Returns an instance of postgres.js. It opens connections when statements need them. */
function connect(
  { DATABASE_URL: { url, database }, DATABASE_PREPARE }: DatabaseConfig,
  socket: OpenSocket,
  { connection, ...size }: DriverOptions,
): DriverSql {
  const options: DriverOptions = {
    ...size,
    // postgres.js would keep the percent-encoding of the name in `url`.
    ...(database && { database }),
    ssl: false,
    prepare: DATABASE_PREPARE === 'true',
    fetch_types: false,
    // A link has a time limit of its own, and the pool has pauses of its own.
    connect_timeout: 0,
    backoff: () => 0,
    idle_timeout: 0,
    max_lifetime: null,
    onnotice: () => {},
    connection: { application_name: 'llavero', ...connection },
  }
  // Object.assign is used because the types of postgres.js do not contain the option `socket`.
  return postgres(url, Object.assign(options, { socket }))
}

/**
 * Sends the first statement on a new connection. Returns the driver's object for this connection.
 * Throws if the host is a standby, where a permission may exist that the primary has revoked.
 */
export async function requirePrimary(driver: DriverSql): Promise<object> {
  const rows = await driver<{ standby: boolean }[]>`select pg_is_in_recovery() as standby`
  // The connection before may have ended after an error partway through its rows. Then empty entries
  // come before the row (see isReusableAfter in pool.ts).
  if (rows.at(-1)?.standby) throw new Error('the host is a standby')
  return rows.state
}

/**
 * Opens one connection to the first host that is a primary. The connection has no SETTINGS, because
 * migrations may take long. The caller must end it. If no host can be used, throws an error with the
 * reason for each host.
 */
export async function openPrimary(config: DatabaseConfig): Promise<DriverSql> {
  const { hosts, tls } = config.DATABASE_URL
  const reasons: string[] = []
  for (const host of hosts) {
    const link = createLink(host, tls, () => {})
    const driver = connect(config, link.open, { max: 1 })
    try {
      await requirePrimary(driver)
      link.keep()
      return driver
    } catch (error) {
      link.cut()
      reasons.push(`${host.host}:${host.port} ${(error as Error).message}`)
    }
  }
  throw new Error(`no host of the database serves: ${reasons.join('; ')}`)
}
