import type postgres from 'postgres'
import { expect, vi } from 'vitest'
import type { Pool } from '../src/database/pool.js'

/** The key of the advisory lock for which the statements wait. */
const LOCK = 4711

/**
 * Sends `count` statements through the pool, which wait for a lock that this function holds. Calls
 * `meanwhile`, and releases the lock when `meanwhile` resolves. Resolves when all statements have
 * been answered. `direct` is another connection to the same database. `meanwhile` must resolve
 * within 2 s, because the pool refuses a statement whose turn for a connection comes after 2.5 s.
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

/** A statement of a transaction. */
export type Step = (tx: postgres.TransactionSql) => Promise<unknown>

/**
 * Calls `send` in the middle of a transaction that holds the locks of `lock`, and `meanwhile` when
 * `count` sessions wait for a lock. Then commits, and resolves to what `send` resolves to.
 */
export async function sendDuring<T>(
  sql: postgres.Sql,
  lock: Step,
  send: () => Promise<T>,
  { meanwhile, count = 1 }: { meanwhile?: Step; count?: number } = {},
): Promise<T> {
  let answer: Promise<T> | undefined
  await sql.begin(async (tx) => {
    await lock(tx)
    answer = send()
    // If this function throws an error before it awaits the answer, the answer may be one that
    // rejects.
    answer.catch(() => {})
    await expect.poll(() => countWaiting(sql)).toBe(count)
    await meanwhile?.(tx)
  })
  return answer as Promise<T>
}

/** Makes the pool open `size` connections, which are idle afterwards. */
export function openConnections(pool: Pool, direct: postgres.Sql, size: number) {
  return holdStatements(pool, direct, size, async () => {
    await vi.waitUntil(() => pool.usage().running === size, { interval: 5, timeout: 2000 })
  })
}
