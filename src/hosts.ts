import type { parseDatabaseUrl } from './config.js'
import { connect, type DatabaseConfig } from './connect.js'
import { DatabaseSilence, type Sql } from './db.js'

/** How long a host may take to let a connection in, seconds; and to answer, milliseconds. */
const PROBE_TIMEOUT = 2
const ANSWER_TIMEOUT = 4500

type Hosts = ReturnType<typeof parseDatabaseUrl>

/**
 * The first host to say that it serves; not asked where there is but one, and any session will do.
 * Throws when none does, with the reasons.
 */
export async function findHost(
  config: DatabaseConfig,
  { urls, sessionAttrs }: Hosts,
): Promise<URL> {
  const [only] = urls
  if (only && urls.length === 1 && sessionAttrs === 'any') return only
  return Promise.any(urls.map((url) => probe(config, url, sessionAttrs))).catch(({ errors }) => {
    const reasons = errors.map(({ message }: Error) => message).join('; ')
    throw new Error(`no host of the database serves: ${reasons}`)
  })
}

/** Whether a session allows what is asked of it, as SQL. */
const CHECKS: Record<Hosts['sessionAttrs'], string> = {
  any: 'true',
  primary: 'not pg_is_in_recovery()',
  'read-write': "not current_setting('transaction_read_only')::boolean",
}

/**
 * Gives `url` back if a new session there allows what `attrs` asks. postgres.js could look for such
 * a host itself, but takes a standby of PostgreSQL 14 or later for one that can be written to, and
 * tries hosts that refuse again and again without a pause.
 */
async function probe(config: DatabaseConfig, url: URL, attrs: Hosts['sessionAttrs']): Promise<URL> {
  const [row] = await ask(config, url, (sql) =>
    sql.unsafe<[{ serves: boolean }]>(`select ${CHECKS[attrs]} as serves`),
  )
  if (row.serves) return url
  throw new Error(`${url.host} is not ${attrs}`)
}

/** Asks something in a session of its own; throws where there is no answer in time. */
export async function ask<Rows>(
  config: DatabaseConfig,
  url: URL,
  question: (sql: Sql) => PromiseLike<Rows>,
): Promise<Rows> {
  const sql = connect(config, url, { max: 1, connect_timeout: PROBE_TIMEOUT })
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DatabaseSilence()), ANSWER_TIMEOUT)
  })
  try {
    return await Promise.race([question(sql), silence])
  } finally {
    clearTimeout(timer)
    sql.end({ timeout: 0 })
  }
}
