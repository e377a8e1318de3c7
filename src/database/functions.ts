import { hash } from 'node:crypto'
import type { TransactionSql } from 'postgres'
import { VERSION } from '../version.js'
import { readSqlFolder } from './files.js'

/**
 * Creates or replaces all functions of sql/functions and sql/transactions, unless this was done before.
 * Each file defines the function that it is named after.
 * Functions that a newer release has created stay as they are, and so does a function without a file.
 *
 * The comment of the table `migracion` says where the functions come from: it has the version of the
 * release and the SHA-256 of all files.
 */
export async function applyFunctions(tx: TransactionSql): Promise<void> {
  const files = [...readSqlFolder('functions'), ...readSqlFolder('transactions')]
  const texts = files.map(({ text }) => text).join('')
  const checksum = hash('sha256', texts)
  const [stored] = await tx<{ comment: string | null }[]>`
    select obj_description('migracion'::regclass, 'pg_class') as comment
  `
  const [, storedVersion = '', storedChecksum] = stored?.comment?.split(' ') ?? []
  if (storedChecksum === checksum) return
  // 0.10.0 is higher than 0.9.0. The versions are compared only if they must be, because that loads
  // collation rules, which takes 12 ms.
  if (storedVersion.localeCompare(VERSION, 'en', { numeric: true }) > 0) return

  // The files are applied in the order of their names, so a `language sql` function may be created
  // before a function that it calls. Without this setting PostgreSQL would refuse to create it.
  await tx`set local check_function_bodies = off`
  for (const { text } of files) {
    await tx.unsafe(text)
  }
  await tx.unsafe(`comment on table migracion is 'functions ${VERSION} ${checksum}'`)
}
