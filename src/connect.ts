import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres, { type Options } from 'postgres'
import type { Config } from './config.js'
import type { Sql } from './db.js'

/**
 * How long a statement may run, in milliseconds: shorter than a query waits for its answer, and
 * long enough for a burst of writes to one profile to be worked off.
 */
const STATEMENT_TIMEOUT = 4000
/** The pause after a connection that could not be made, in milliseconds. */
const PAUSE = 250

export type DatabaseConfig = Pick<Config, 'databaseUrl' | 'databasePoolMax' | 'databasePrepare'>

/** A postgres.js pool on one host of the database; `options` overrides single settings. */
export function connect(
  config: DatabaseConfig,
  url: URL,
  options: Options<Record<string, never>>,
): Sql {
  const address = new URL(url)
  // hosts.ts asks that itself.
  address.searchParams.delete('target_session_attrs')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || 5432)
  // Which the types don't know: lists, for of a text it takes an IPv6 address apart; and sockets.
  const place: object = { host: [host], port: [port], socket: socketMaker(host, port) }
  return postgres(address.href, {
    max: config.databasePoolMax,
    prepare: config.databasePrepare,
    fetch_types: false,
    connect_timeout: 10,
    idle_timeout: 60,
    // A connection that ends by its age takes the pool with it, see pool.ts.
    max_lifetime: null,
    // Without this the pause between attempts grows to 20 s, and the service stays away that long
    // after the database is back.
    backoff: () => PAUSE / 1000,
    onnotice: () => {},
    ...place,
    ...options,
    // A pooler that can't keep prepared statements refuses these at start-up too.
    connection: {
      application_name: 'llavero',
      ...(config.databasePrepare && {
        statement_timeout: STATEMENT_TIMEOUT,
        idle_in_transaction_session_timeout: STATEMENT_TIMEOUT,
        // Locks are taken first, and what they protect is read after: each statement anew.
        default_transaction_isolation: 'read committed',
      }),
    },
  })
}

/**
 * Gives what makes the sockets of one pool. postgres.js tries at once, thousands of times a second,
 * where something lets it in and says nothing before it closes, as proxies do whose server is away.
 */
function socketMaker(host: string, port: number) {
  let closedAt = -PAUSE
  return async () => {
    const pause = closedAt + PAUSE - performance.now()
    if (pause > 0) await sleep(pause)
    const socket = net.connect(port, host)
    socket.once('close', () => {
      if (socket.bytesRead === 0) closedAt = performance.now()
    })
    // By which it names the server in errors and in TLS.
    return Object.assign(socket, { host, port })
  }
}
