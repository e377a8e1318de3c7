import type { Sql } from '../database/sql.js'
import type { Fila, Filtro, Pregunta } from './schemas.js'

/** The number of rows of a page (contract, section 5 of the decisions). */
const PAGE_SIZE = 50

// An id of the audit is a bigint, which the driver would return as a text. A double has room for each of
// them.
const columns = (sql: Sql) => sql`
  id::float8 as id,
  fecha,
  "idUsuario",
  "strNombreUsuario",
  "idPerfil",
  "strNombrePerfil",
  ip,
  "idPeticion",
  accion,
  entidad,
  "idEntidad",
  nombre,
  antes,
  despues
`

/**
 * Finds one page of the audit, newest rows first. `siguiente` is the id of the last row if there are
 * more rows, and null otherwise: the next page has the rows before it.
 *
 * Each filter has an index in which the rows of the page are adjacent, so the statement reads at most
 * one row more than it returns, wherever the page begins. Of several filters, one uses its index.
 */
export async function listAuditoria(
  sql: Sql,
  { antes, idUsuario, entidad, id, desde, hasta }: Filtro,
) {
  const every = sql`true`
  const rows = await sql<Fila[]>`
    select ${columns(sql)}
    from auditoria
    where ${antes === undefined ? every : isBefore(sql, antes)}
      and ${idUsuario === undefined ? every : sql`"idUsuario" = ${idUsuario}`}
      and ${entidad === undefined ? every : sql`entidad = ${entidad}`}
      and ${id === undefined ? every : sql`"idEntidad" = ${id}`}
      and ${desde === undefined ? every : sql`fecha >= ${moment(sql, desde)}`}
      and ${hasta === undefined ? every : sql`fecha < ${moment(sql, hasta)}`}
    order by auditoria.fecha desc, auditoria.id desc
    limit ${PAGE_SIZE + 1}
  `
  const data = rows.slice(0, PAGE_SIZE)
  const siguiente = rows.length > PAGE_SIZE ? (data.at(-1)?.id ?? null) : null
  return { data, siguiente }
}

const isBefore = (sql: Sql, id: number) =>
  sql`(fecha, id) < ((select fecha from auditoria where id = ${id}), ${id}::bigint)`

/** Returns the timestamp for a number of milliseconds since 1970. */
const moment = (sql: Sql, milliseconds: number) =>
  sql`to_timestamp(${milliseconds}::float8 / 1000)`

/** Finds the rows by which a user got a permission, oldest first (sql/functions/origen_de_permiso.sql). */
export async function findOrigen(sql: Sql, { idUsuario, modulo, accion }: Pregunta) {
  // Names of modules are stored in upper case, as JavaScript converts them.
  return sql<Fila[]>`
    select ${columns(sql)}
    from origen_de_permiso(${idUsuario}, ${modulo.toUpperCase()}, ${accion})
    order by id
  `
}
