import { ALWAYS, fragment, type Sql } from '../database/sql.js'
import type { AuditoriaFiltro, FilaDeAuditoria, OrigenFiltro } from './schemas.js'

const NOTHING = fragment``
/** The largest number of rows of a page. */
const MAX_ROWS = 50
/**
 * A page ends with the row whose records bring it to this many bytes, uncompressed. 50 rows about
 * matrices of 100 modules stay below it. One row in which 10,000 modules change has 4 MB.
 */
const PAGE_BYTES = 4 * 1024 * 1024

/**
 * The bytes of a row's records. pg_column_size alone gives their compressed size. `'{}' ||` makes
 * PostgreSQL decompress a record, and does not change it.
 */
const BYTES = fragment`
  coalesce(pg_column_size('{}' || antes), 0) + coalesce(pg_column_size('{}' || despues), 0)
`

/**
 * Finds one page of the audit, newest rows first: MAX_ROWS rows, or fewer if they reach PAGE_BYTES.
 * `siguiente` is the id of the last row if there are more rows, and null otherwise: the next page
 * has the rows before it.
 *
 * Each filter has an index in which the rows of the page are adjacent. With `entidad=perfil`,
 * `id=7` and `antes=900`, for example, the statement is
 *
 *     where ("idEntidad", entidad, fecha) >= (7, 'perfil', …)
 *       and ("idEntidad", entidad, fecha, id) < (7, 'perfil', …, 900)
 *     order by "idEntidad" desc, entidad desc, fecha desc, id desc
 *
 * Both comparisons contain the columns of the filter together with the time. So with one filter
 * PostgreSQL reads at most MAX_ROWS + 1 rows. If the filter were a condition of its own, PostgreSQL
 * could read the rows of all records in the order of their time. If `idUsuario` is given together
 * with `entidad`, one of them is not in the comparisons, and PostgreSQL checks it row by row.
 */
export async function listAuditoria(sql: Sql, filtro: AuditoriaFiltro) {
  const { antes, desde = -Infinity, hasta = Infinity } = filtro
  const { index, values, otherCondition } = indexFor(filtro)
  const from = timestamp(desde)
  const to = timestamp(hasta)
  // The rows of the page lie before this time and this id. Without `antes` these are `to` and 0.
  // Ids begin with 1, so they exclude every row of the time `to`. The row `antes` may be later than
  // `to`, so the statement compares `fecha` with `to` as well.
  const before =
    antes === undefined
      ? fragment`${to}, 0`
      : fragment`(select fecha from auditoria where id = ${antes}), ${antes}::bigint`
  const data = await sql<(FilaDeAuditoria & { hasNext: boolean })[]>`
    with found as (
      select *
      from auditoria
      where (${index.columns} fecha) >= (${values} ${from})
        and (${index.columns} fecha, id) < (${values} ${before})
        and fecha < ${to}
        and ${otherCondition}
      order by ${index.order} fecha desc, id desc
      limit ${MAX_ROWS + 1}
    ),
    measured as (
      select
        * ,
        lead(id) over newest_first is not null as "hasNext",
        coalesce(
          sum(${BYTES}) over (newest_first rows between unbounded preceding and 1 preceding),
          0
        ) as "bytesBefore"
      from found
      window newest_first as (order by fecha desc, id desc)
    )
    select *
    from measured
    where "bytesBefore" < ${PAGE_BYTES}
    order by fecha desc, id desc
    limit ${MAX_ROWS}
  `
  // The schema of the answer leaves out the two columns that `measured` adds.
  const last = data.at(-1)
  return { data, siguiente: last?.hasNext ? last.id : null }
}

// For each index of the audit, its columns before `fecha`, as a list and as a part of `order by`.
// Both end with a comma, because `fecha` follows.
const BY_FECHA = { columns: NOTHING, order: NOTHING }
const BY_USUARIO = { columns: fragment`"idUsuario",`, order: fragment`"idUsuario" desc,` }
const BY_ENTIDAD = { columns: fragment`entidad,`, order: fragment`entidad desc,` }
const BY_REGISTRO = {
  columns: fragment`"idEntidad", entidad,`,
  order: fragment`"idEntidad" desc, entidad desc,`,
}

/**
 * Returns the index for the filter, the values of its columns, and the condition that it does not
 * serve.
 */
function indexFor({ idUsuario, entidad, id }: AuditoriaFiltro) {
  if (entidad !== undefined && id !== undefined) {
    return {
      index: BY_REGISTRO,
      values: fragment`${id}::integer, ${entidad},`,
      otherCondition: idUsuario === undefined ? ALWAYS : fragment`"idUsuario" = ${idUsuario}`,
    }
  }
  if (idUsuario !== undefined) {
    return {
      index: BY_USUARIO,
      values: fragment`${idUsuario}::integer,`,
      otherCondition: entidad === undefined ? ALWAYS : fragment`entidad = ${entidad}`,
    }
  }
  if (entidad !== undefined) {
    return { index: BY_ENTIDAD, values: fragment`${entidad},`, otherCondition: ALWAYS }
  }
  return { index: BY_FECHA, values: NOTHING, otherCondition: ALWAYS }
}

/** Returns the timestamp for a number of milliseconds since 1970, which may be infinite. */
const timestamp = (milliseconds: number) => fragment`to_timestamp(${milliseconds}::float8 / 1000)`

/**
 * Finds the rows by which a user got a permission, oldest first
 * (sql/functions/origen_de_permiso.sql).
 */
export async function findOrigenDePermiso(sql: Sql, { idUsuario, modulo, accion }: OrigenFiltro) {
  // Names of modules are stored in upper case, as JavaScript converts them.
  return sql<FilaDeAuditoria[]>`
    select *
    from origen_de_permiso(${idUsuario}, ${modulo.toUpperCase()}, ${accion})
  `
}
