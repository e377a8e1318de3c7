import type postgres from 'postgres'
import { vi } from 'vitest'
import type { Pool } from '../src/database/pool.js'

/** The key of the advisory lock for which the statements wait. */
const LOCK = 4711

/**
 * Sends `count` statements through the pool, which wait for a lock that this function holds. Calls
 * `meanwhile`, and releases the lock when `meanwhile` resolves. Resolves when all statements have
 * been answered. `direct` is another connection to the same database. `meanwhile` must resolve
 * within 2 s, because the pool rejects a statement that has waited for a connection for 2.5 s.
 */
export async function holdStatements(
  pool: Pool,
  direct: postgres.Sql,
  count: number,
  meanwhile: () => Promise<unknown>,
) {
  let statements: Promise<unknown> | undefined
  await direct.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${LOCK})`
    const wait = () => pool`select pg_advisory_xact_lock_shared(${LOCK})`
    statements = Promise.all(Array.from({ length: count }, wait))
    await meanwhile()
  })
  await statements
}

/**
 * Returns how many sessions of this database wait for a lock. `sql` must not be a transaction,
 * because a transaction sees pg_stat_activity as it was at its first look.
 */
export async function countWaiting(sql: postgres.Sql) {
  const rows = await sql`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
  `
  return rows.length
}

/** Makes the pool open `size` connections, which are idle afterwards. */
export function openConnections(pool: Pool, direct: postgres.Sql, size: number) {
  return holdStatements(pool, direct, size, async () => {
    await vi.waitUntil(() => pool.usage().running === size, { interval: 5, timeout: 2000 })
  })
}
