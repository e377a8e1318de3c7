import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Sql as DriverSql, TransactionSql } from 'postgres'
import { VERSION } from '../version.js'

/** The key of the advisory lock for migrations. No other advisory lock has it. */
export const MIGRATION_LOCK = 7_305_511_402

/**
 * Brings the database up to date in one transaction. Applies the files of sql/migrations that were
 * not applied before, and the functions of sql/functions and sql/transactions if one of them has
 * changed (sql/README.md). An advisory lock makes replicas that start at the same time do this one
 * after the other.
 *
 * Returns the names of the migrations that it has applied. If the database has a migration that
 * this release does not know, a newer release has migrated the database. Then migrate changes
 * nothing and returns undefined.
 */
export async function migrate(sql: DriverSql): Promise<string[] | undefined> {
  const migrations = readSqlFolder('migrations')
  const known = migrations.map(({ name }) => name)

  // With another isolation level, which may be the server's default, the statements after the lock
  // would not see what another replica has committed while this one waited.
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
    const present = rows.map(({ nombre }) => nombre)
    if (present.some((name) => !known.includes(name))) return undefined

    const pending = migrations.filter(({ name }) => !present.includes(name))
    for (const { name, text } of pending) {
      await tx.unsafe(text)
      await tx`insert into migracion (nombre) values (${name})`
    }
    await applyFunctions(tx)
    return pending.map(({ name }) => name)
  })
}

/**
 * Creates or replaces all functions of sql/functions and sql/transactions, unless the database has
 * them already, or has those of a newer release. The comment of the table `migracion` says where
 * the functions come from: it has the version of the release and the SHA-256 of all files.
 */
async function applyFunctions(tx: TransactionSql): Promise<void> {
  const files = [...readSqlFolder('functions'), ...readSqlFolder('transactions')]
  const functions = files.map(({ text }) => text).join(';\n')
  const checksum = hash('sha256', functions)
  const [stored] = await tx<{ comment: string | null }[]>`
    select obj_description('migracion'::regclass, 'pg_class') as comment
  `
  const [, storedVersion = '', storedChecksum] = stored?.comment?.split(' ') ?? []
  if (storedChecksum === checksum) return
  // With `numeric`, 0.10.0 is higher than 0.9.0.
  if (storedVersion.localeCompare(VERSION, 'en', { numeric: true }) > 0) return

  // The files are applied in the order of their names, so a `language sql` function may be created
  // before a function that it calls. Without this setting PostgreSQL would refuse to create it.
  await tx`set local check_function_bodies = off`
  await tx.unsafe(functions)
  await tx.unsafe(`comment on table migracion is 'functions ${VERSION} ${checksum}'`)
}

/**
 * Returns the files of the folder sql/`folder`, in the order of their names: the name of each,
 * without its folder, and its content.
 */
function readSqlFolder(folder: string) {
  const url = new URL(`../../sql/${folder}/`, import.meta.url)
  const names = readdirSync(url).sort()
  return names.map((name) => ({ name, text: readFileSync(new URL(name, url), 'utf8') }))
}
