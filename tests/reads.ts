import type postgres from 'postgres'

/** Runs a query and rolls it back; returns how many rows of `table` it has read. */
export async function countReads(
  sql: postgres.Sql,
  table: string,
  query: (tx: postgres.Sql) => Promise<unknown>,
) {
  const tx = await sql.reserve()
  const readCount = async () => {
    const [row] = await tx`
      select seq_tup_read + coalesce(idx_tup_fetch, 0) as reads
      from pg_stat_xact_user_tables
      where relname = ${table}
    `
    return Number(row?.reads)
  }
  await tx`begin`
  const before = await readCount()
  await query(tx)
  const reads = (await readCount()) - before
  await tx`rollback`
  tx.release()
  return reads
}
