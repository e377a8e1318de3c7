import { ALWAYS, fragment, type Sql, type Value } from './sql.js'

/** The number of rows of a page (contract, section 8). */
export const PAGE_SIZE = 5

const PAGE = fragment`select * from page_rows`
const MATERIALIZED = fragment`materialized`
const NOT_MATERIALIZED = fragment`not materialized`

/**
 * Returns the number of rows before a page. The first page has the number 1, and is the default.
 */
export const offset = (page = 1) => (page - 1) * PAGE_SIZE

/**
 * Finds a page of a list, newest rows first, and the number of pages, with one statement. A page
 * past the end has no rows.
 *
 * `rows` is a select of all rows of the list, in any order, with their `id`. `shown` is a select
 * from `page_rows`, the rows of the page. It may join other tables.
 *
 * With a `search`, the list is `materialized`: PostgreSQL finds the matching rows once, for both
 * the page and the count. Without one, it reads the list by the index on `id`, from the newest row
 * to the end of the page, and counts it separately.
 */
export async function findPage<Row extends { id: number }>(
  sql: Sql,
  { page, search }: { page?: number; search?: string },
  rows: Value,
  shown = PAGE,
) {
  const materialized = search === undefined ? NOT_MATERIALIZED : MATERIALIZED
  const found = await sql<(Row & { total: number })[]>`
    with all_rows as ${materialized} (${rows}),
    page_rows as (
      select * from all_rows
      order by id desc
      limit ${PAGE_SIZE}
      offset ${offset(page)}
    )
    select counted.total, shown.*
    from (select count(*) as total from all_rows) as counted
    left join (${shown}) as shown on true
    order by shown.id desc
  `
  return splitPage<Row>(found)
}

/**
 * Returns the rows of a page and the number of pages. Each row in `found` has the number of all
 * rows of the list as `total`. If the page is empty, `found` is one row with the id null.
 */
export function splitPage<Row extends { id: number }>(found: (Row & { total: number })[]) {
  const data: Row[] = found.filter(({ id }) => id !== null)
  return { data, totalPages: Math.ceil((found[0]?.total ?? 0) / PAGE_SIZE) }
}

/**
 * Returns the condition that a column contains the text `search`. Without a text, the condition is
 * always true. Upper and lower case of ASCII and Spanish letters are not distinguished. `%`, `_`
 * and `\` in the text are ordinary characters. The pattern is in a subquery, so that PostgreSQL
 * folds its case once for the whole statement and not again for each row.
 */
export function hasText(column: Value, search?: string) {
  if (search === undefined) return ALWAYS
  const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`
  return fragment`fold_case(${column}) like (select fold_case(${pattern}))`
}
