import { Socket } from 'node:net'
import postgres, { type Options, type PendingQuery, type PostgresType, type Row } from 'postgres'
import type { Config } from '../config.js'
import { withTimeout } from './sql.js'

export type Host = Config['DATABASE_URL']['hosts'][number]

/** How long opening a connection may take, in seconds. */
export const CONNECT_TIMEOUT_SECONDS = 2

/** The options of postgres.js. Its types lack two of them. */
type DriverOptions = Options<Record<string, PostgresType>> & {
  max_pipeline?: number
  socket?(): Socket
}

/**
 * The members of a query of postgres.js 3.4.9 that the pool uses and that its types lack. The
 * driver calls `handler` when the query is awaited for the first time. `state` is null until the
 * query is sent.
 */
export interface Query extends PendingQuery<Row[]> {
  handler(query: Query): void
  resolve(rows: object): void
  reject(error: unknown): void
  state: object | null
}

/**
 * Makes the driver return a bigint as a number and not as a text. A number is exact up to 2^53,
 * which no id and no count reaches.
 */
const BIGINT = { ...postgres.BigInt, parse: Number }

/**
 * Makes an instance of postgres.js, and returns it as `sql`, together with the functions that the
 * pool needs. The instance opens connections when statements need them. All of them go to the same
 * host.
 */
export function openDriver(
  { DATABASE_URL: { url, database, isVerified }, DATABASE_PREPARE }: Config,
  host: Host,
  { connection, ...further }: DriverOptions,
) {
  let sockets: Socket[] = []
  let isClosed = false

  function openSocket() {
    // postgres.js reads `host` and `port` of a socket. It passes `host` on to TLS as the name of
    // the server, unless it is an IP address. It names both if the connection is not open in time.
    const socket = Object.assign(new Socket(), host)
    sockets = [...sockets.filter(({ destroyed }) => !destroyed), socket]
    socket.on('end', () => {
      // If the host closes the connection before it has sent anything, postgres.js connects again
      // at once, for ever. An error stops these attempts. Under TLS postgres.js removes this
      // listener, and only the deadline of the statement stops them.
      if (socket.bytesRead === 0) socket.destroy(new Error('the host has closed the connection'))
    })
    // postgres.js adds its listeners after this function has returned. The socket must not connect
    // before that.
    queueMicrotask(() => {
      if (isClosed) socket.destroy(new Error('the connection was reset'))
      else socket.connect(host)
    })
    return socket
  }

  /**
   * Closes all connections with a reset, which drops the bytes that were not sent yet. So a
   * statement that was reported as failed cannot reach the server later. No connection can be
   * opened afterwards.
   */
  function reset() {
    isClosed = true
    for (const socket of sockets) {
      // If the socket is being ended, resetAndDestroy would wait for ever.
      if (!socket.writableEnded) socket.resetAndDestroy()
      // While the socket is connecting, resetAndDestroy waits, and destroy does not.
      socket.destroy()
    }
  }

  const options: DriverOptions = {
    ...further,
    // postgres.js never gives up a connection whose server has disappeared without closing it, and
    // cannot reset one. So the sockets are opened here, where `reset` reaches them.
    socket: openSocket,
    // postgres.js would keep the percent-encoding of the name in `url`.
    database,
    // The other TLS modes are in `url`. For an IP address, postgres.js does not pass on the name
    // that the certificate must contain.
    ...(isVerified && { ssl: { host: host.host } }),
    prepare: DATABASE_PREPARE === 'true',
    // Otherwise the driver would ask for the types of arrays on each new connection.
    fetch_types: false,
    types: { bigint: BIGINT },
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    // The pool pauses before it tries again.
    backoff: false,
    // A standby is refused. This takes precedence over the same parameter in DATABASE_URL.
    target_session_attrs: 'primary',
    // Otherwise the driver would close each connection after 30 to 60 minutes.
    max_lifetime: null,
    // Otherwise the driver would print the server's notices.
    onnotice: () => {},
    connection: { application_name: 'llavero', ...connection },
  }

  const sql = postgres(url, options)
  // The function with which this instance sends a query when it is awaited.
  const { handler } = sql`` as unknown as Query

  return {
    host,
    sql,
    /**
     * Sends a query over a free connection of this instance, or opens one for it, even if another
     * instance has created the query. The driver then calls `resolve` or `reject` of the query.
     */
    send: handler,
    /**
     * Closes all connections when their statements have been answered, or after `timeout` seconds.
     */
    async end(timeout: number) {
      await sql.end({ timeout })
      reset()
    },
    reset,
  }
}

/**
 * Opens one connection to the first host that can be used, for migrations, which may take long.
 * The caller must end it. If no host can be used, throws an error with the reason for each host.
 */
export async function openPrimary(config: Config) {
  const reasons: string[] = []
  for (const host of config.DATABASE_URL.hosts) {
    const { sql, reset } = openDriver(config, host, { max: 1 })
    try {
      await withTimeout(sql`select`)
      return sql
    } catch (error) {
      reset()
      reasons.push(`${host.host}:${host.port} ${(error as Error).message}`)
    }
  }
  throw new Error(`no host of the database serves: ${reasons.join('; ')}`)
}
