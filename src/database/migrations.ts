import { readdir, readFile } from 'node:fs/promises'
import type { DriverSql } from './sql.js'

const SQL_FOLDER = new URL('../../sql/', import.meta.url)
/** Any number that no one else locks in this database. */
const MIGRATION_LOCK = 7_305_511_402

/**
 * Brings the database up to date in one transaction: each file of sql/migrations once, those of
 * sql/functions and sql/transactions every time. Replicas that start together wait for one another
 * on an advisory lock. Gives the names of the migrations applied now; undefined, with nothing
 * changed, where a newer release has applied others.
 */
export async function migrate(sql: DriverSql): Promise<string[] | undefined> {
  const migrations = new Map(await readSqlFolder('migrations/'))
  const functions = await readSqlFolder('functions/')
  const transactions = await readSqlFolder('transactions/')

  return sql.begin(async (tx) => {
    // The others may wait for long while the first one works.
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
    if (applied.some((name) => !migrations.has(name))) return undefined

    const pending = [...migrations].filter(([name]) => !applied.includes(name))
    for (const [name, text] of pending) {
      await tx.unsafe(text)
      await tx`insert into migracion (nombre) values (${name})`
    }
    // One in SQL may come before what it calls.
    await tx`set local check_function_bodies = off`
    for (const [, text] of [...functions, ...transactions]) await tx.unsafe(text)
    return pending.map(([name]) => name)
  })
}

async function readSqlFolder(folder: string) {
  const url = new URL(folder, SQL_FOLDER)
  const names = (await readdir(url)).filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name) => [name, await readFile(new URL(name, url), 'utf8')] as const),
  )
}
