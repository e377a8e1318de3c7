import { TRUE } from '../database/page.js'
import { part, type Sql } from '../database/sql.js'
import type { Fila, Filtro, Pregunta } from './schemas.js'

/** The number of rows of a page. */
const MAX_ROWS = 50

/**
 * Finds one page of the audit, newest rows first. `siguiente` is the id of the last row if there
 * are more rows, and null otherwise: the next page has the rows before it.
 *
 * Each filter has an index in which the rows of the page are adjacent. So with one filter the
 * statement reads at most one row more than it returns, wherever the page begins. The filter, the
 * time and the id are one comparison, like `("idUsuario", fecha, id) < (7, now(), 0)`. If the filter
 * were a condition of its own, PostgreSQL would avoid the index for a frequent value. `idUsuario`
 * together with `entidad` uses one index, and the other condition is checked row by row.
 */
export async function listAuditoria(sql: Sql, filtro: Filtro) {
  const { antes, desde = -Infinity, hasta = Infinity } = filtro
  const { keyColumns, keyValues, keyOrder, otherCondition } = indexKeyFor(filtro)
  const from = moment(desde)
  const to = moment(hasta)
  // Ids begin with 1, so (to, 0) excludes every row of the moment `to`.
  const end =
    antes === undefined
      ? part`${to}, 0`
      : part`(select fecha from auditoria where id = ${antes}), ${antes}::bigint`
  const rows = await sql<Fila[]>`
    select *
    from auditoria
    where (${keyColumns} fecha) >= (${keyValues} ${from})
      and (${keyColumns} fecha, id) < (${keyValues} ${end})
      and fecha < ${to}
      and ${otherCondition}
    order by ${keyOrder} fecha desc, id desc
    limit ${MAX_ROWS + 1}
  `
  const data = rows.slice(0, MAX_ROWS)
  const siguiente = rows.length > MAX_ROWS ? (data.at(-1)?.id ?? null) : null
  return { data, siguiente }
}

/**
 * Returns the columns before `fecha` in the index for the filter, their values, their order, and
 * the condition that the index does not serve.
 */
function indexKeyFor({ idUsuario, entidad, id }: Filtro) {
  if (entidad !== undefined && id !== undefined) {
    return {
      keyColumns: part`entidad, "idEntidad",`,
      keyValues: part`${entidad}, ${id}::integer,`,
      keyOrder: part`entidad desc, "idEntidad" desc,`,
      otherCondition: idUsuario === undefined ? TRUE : part`"idUsuario" = ${idUsuario}`,
    }
  }
  if (idUsuario !== undefined) {
    return {
      keyColumns: part`"idUsuario",`,
      keyValues: part`${idUsuario}::integer,`,
      keyOrder: part`"idUsuario" desc,`,
      otherCondition: entidad === undefined ? TRUE : part`entidad = ${entidad}`,
    }
  }
  if (entidad !== undefined) {
    return {
      keyColumns: part`entidad,`,
      keyValues: part`${entidad},`,
      keyOrder: part`entidad desc,`,
      otherCondition: TRUE,
    }
  }
  return { keyColumns: part``, keyValues: part``, keyOrder: part``, otherCondition: TRUE }
}

/** Returns the timestamp for a number of milliseconds since 1970, which may be infinite. */
const moment = (milliseconds: number) => part`to_timestamp(${milliseconds}::float8 / 1000)`

/**
 * Finds the rows by which a user got a permission, oldest first
 * (sql/functions/origen_de_permiso.sql).
 */
export async function findOrigen(sql: Sql, { idUsuario, modulo, accion }: Pregunta) {
  // Names of modules are stored in upper case, as JavaScript converts them.
  return sql<Fila[]>`
    select *
    from origen_de_permiso(${idUsuario}, ${modulo.toUpperCase()}, ${accion})
  `
}
