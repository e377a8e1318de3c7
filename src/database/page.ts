import type { Sql, Statement } from './sql.js'

/** Rows of a page, fixed by the contract (section 8). */
export const PAGE_SIZE = 5

/** The number of rows before `page`, which counts from 1. */
export const offset = (page: number) => (page - 1) * PAGE_SIZE

/** The number of pages that `rows` rows fill; 0 for none. */
export const pageCount = (rows: number) => Math.ceil(rows / PAGE_SIZE)

/** A part of a statement. */
type Fragment = Statement<unknown>

interface List {
  /** Selects all rows of the list with their `id`, in any order. */
  rows: Fragment
  /** Whether `rows` searches for a text. */
  isSearch: boolean
  /** Selects from `pagina`, the rows of the page, what the client sees; by default all of it. */
  seen?: Fragment
}

/**
 * Finds a page of a list, newest rows first, and the number of pages, in one statement. A page past
 * the end has no rows.
 *
 * A search is done once, for the page and the count. If the planner could look for the page by
 * itself, it would read the table from the newest row on, and all of it where nothing matches: 23 ms
 * among 20,000 users, and this takes 0.2. Without a search it should do just that.
 *
 * `limit` and `offset` are subqueries so that the plan is kept. The planner takes the value of a
 * parameter there into account, so it would plan the statement each time, for 0.3 ms.
 */
export async function findPage<Row extends { id: number }>(
  sql: Sql,
  page: number,
  { rows, isSearch, seen = sql`select * from pagina` }: List,
): Promise<{ data: Row[]; totalPages: number }> {
  const found = await sql<(Row & { total: number })[]>`
    with todas as ${isSearch ? sql`materialized` : sql`not materialized`} (${rows}),
    pagina as (
      select * from todas
      order by id desc
      limit (select ${PAGE_SIZE}::integer) offset (select ${offset(page)}::bigint)
    )
    select cuenta.total, vistas.*
    from (select count(*)::integer as total from todas) as cuenta
    left join (${seen}) as vistas on true
    order by vistas.id desc
  `
  return splitPage(found)
}

/**
 * The rows of a page and the number of pages, from rows that each have the `total` of the list. For
 * an empty page there is one row, whose id is null.
 */
export function splitPage<Row extends { id: number }>(found: (Row & { total: number })[]) {
  const data: Row[] = found.filter(({ id }) => id !== null)
  return { data, totalPages: pageCount(found[0]?.total ?? 0) }
}

/**
 * Whether a column has the text `search` in it, whatever the case; `%`, `_` and `\` in the text are
 * ordinary characters. The pattern is a subquery so that it is folded once for a statement: else it
 * is folded again for each row that is read.
 */
export const hasText = (sql: Sql, column: Fragment, search: string) =>
  sql`fold_case(${column}) like (select fold_case(${pattern(search)}))`

const pattern = (search: string) => `%${search.replace(/[\\%_]/g, '\\$&')}%`
