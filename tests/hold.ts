import type postgres from 'postgres'
import { expect } from 'vitest'
import type { Pool } from '../src/database/pool.js'

/** The key of the advisory lock for which the statements wait. */
const LOCK = 4711

/**
 * Calls `count` statements through the pool, and `meanwhile` while none of them has an answer,
 * because they wait for a lock of the test. Resolves when all of them have been answered. `direct`
 * is another connection to the same database. `meanwhile` has 2 s, because the pool rejects a
 * statement that waits longer for a connection.
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

/** Makes the pool open `size` connections, which are idle afterwards. */
export function openConnections(pool: Pool, direct: postgres.Sql, size: number) {
  return holdStatements(pool, direct, size, async () => {
    await expect.poll(() => pool.usage().running, { interval: 5 }).toBe(size)
  })
}
