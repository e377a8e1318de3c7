import type { Sql } from 'postgres'
import { readSqlFolder } from './files.js'
import { applyFunctions } from './functions.js'

/** The key of the advisory lock for migrations. No other lock in this database has it. */
export const MIGRATION_LOCK = 7_305_511_402

/**
 * Brings the database up to date in one transaction. Applies the files of sql/migrations that were
 * not applied before, and the functions of sql/functions and sql/transactions if one of them has changed
 * (sql/README.md).
 * An advisory lock makes replicas that start at the same time do this one after the other.
 *
 * Returns the names of the migrations that it has applied. If the database has a migration that
 * this release does not know, a newer release has migrated the database. Then migrate changes
 * nothing and returns undefined.
 */
export async function migrate(sql: Sql): Promise<string[] | undefined> {
  const migrations = readSqlFolder('migrations')
  const known = migrations.map(({ name }) => name)

  // With another isolation level, which may be the server's default, the statements after the lock would
  // not see what another replica has committed while this one waited.
  return sql.begin('isolation level read committed', async (tx) => {
    // The statement that takes the advisory lock waits while another replica migrates. That may
    // take longer than the statement_timeout in the server's own configuration allows.
    await tx`set local statement_timeout = 0`
    await tx`select pg_advisory_xact_lock(${MIGRATION_LOCK})`
    await tx`
      create table if not exists migracion (
        nombre text constraint migracion_pk primary key,
        aplicada timestamptz not null default now()
      )
    `
    const rows = await tx<{ nombre: string }[]>`select nombre from migracion`
    const applied = rows.map(({ nombre }) => nombre)
    if (applied.some((name) => !known.includes(name))) return undefined

    const pending = migrations.filter(({ name }) => !applied.includes(name))
    for (const { name, text } of pending) {
      await tx.unsafe(text)
      await tx`insert into migracion (nombre) values (${name})`
    }
    await applyFunctions(tx)
    return pending.map(({ name }) => name)
  })
}
