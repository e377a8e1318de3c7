import type { Caller } from '../access/caller.js'
import { type FailureByConstraint, write } from '../access/write.js'
import { offset, PAGE_SIZE, splitPage } from '../database/page.js'
import { fragment, type Sql } from '../database/sql.js'
import type {
  EntradaDeMatriz,
  Permiso,
  PermisoConNombres,
  PermisoEnviado,
  PermisosAccion,
} from './schemas.js'

/** The columns with the flags of a permission record. */
const FLAGS = fragment`
  "bitAgregar",
  "bitEditar",
  "bitConsulta",
  "bitEliminar",
  "bitDetalle"
`

/** The failures of a write of a single record. */
const FAILURES: FailureByConstraint = {
  permisos_perfil_perfil_fk: ['invalid'],
  permisos_perfil_modulo_fk: ['invalid'],
  permisos_perfil_unico: ['conflict'],
}
/** The failures of a replacement of all records of a profile. */
const MATRIZ_FAILURES: FailureByConstraint = {
  permisos_perfil_perfil_fk: ['conflict'],
  permisos_perfil_modulo_fk: ['conflict'],
}

/**
 * Finds one page of all permission records, by ascending id, with the names of their profiles and
 * modules. Also returns the number of pages, which is at least 1 (contract, section 4.2).
 *
 * The number of records is the sum of the counters in the profiles' rows, which every write keeps
 * right. PostgreSQL reads the ids from the index of the primary key, from its start to the end of
 * the page. Only the records of the page are joined.
 */
export async function listPermisos(sql: Sql, page?: number) {
  const rows = await sql<(PermisoConNombres & { total: number })[]>`
    select
      permisos_perfil.id,
      "idPerfil",
      "idModulo",
      "strNombrePerfil" as "nombrePerfil",
      "strNombreModulo" as "nombreModulo",
      ${FLAGS},
      total
    from (select sum("numPermisos") as total from perfil) as counted
    left join (
      permisos_perfil
      join perfil on perfil.id = "idPerfil"
      join modulo on modulo.id = "idModulo"
    ) on permisos_perfil.id = any(array(
      select id
      from permisos_perfil
      order by id
      limit ${PAGE_SIZE}
      offset ${offset(page)}
    ))
    order by permisos_perfil.id
  `
  const { data, totalPages } = splitPage(rows)
  return { data, totalPages: Math.max(1, totalPages) }
}

/**
 * Finds the permission records of a profile, by ascending id, and their version, which is null if
 * the profile is unknown.
 */
export async function listPermisosPorPerfil(sql: Sql, idPerfil: number) {
  const rows = await sql<(Permiso & { version: string })[]>`
    select
      "versionPermisos" as version,
      permisos_perfil.id,
      "idPerfil",
      "idModulo",
      ${FLAGS}
    from perfil
    left join permisos_perfil on "idPerfil" = perfil.id
    where perfil.id = ${idPerfil}
    order by permisos_perfil.id
  `
  // If the profile has no records, the statement returns one row, in which `id` is null.
  const permisos = rows.filter(({ id }) => id !== null)
  return { version: rows[0]?.version ?? null, permisos }
}

/**
 * Finds the permission map of a profile (contract, section 4.6), which is empty if the profile is
 * unknown. `version` is null then. `body` is the body of the answer, as JSON.
 */
export async function findMapa(sql: Sql, idPerfil: number) {
  const rows = await sql<(PermisosAccion & { version: string })[]>`
    select
      "versionPermisos" as version,
      "strNombreModulo" as "nombreModulo",
      ${FLAGS}
    from perfil
    left join (
      permisos_perfil
      join modulo on modulo.id = "idModulo"
    ) on "idPerfil" = perfil.id
    where perfil.id = ${idPerfil}
    order by permisos_perfil.id
  `
  // If the profile has no records, the statement returns one row, in which `nombreModulo` is null.
  const named = rows.filter(({ nombreModulo }) => nombreModulo !== null)
  const entries = named.map(({ version: _, ...accion }) => [accion.nombreModulo, accion])
  const json = JSON.stringify({ success: true, permisos: Object.fromEntries(entries) })
  return { version: rows[0]?.version ?? null, body: Buffer.from(json) }
}

/**
 * Adds a permission record and returns it as `data`. Throws the Failure `invalid` if the profile or
 * the module is unknown, and `conflict` if the profile has a record for the module already.
 */
export async function insertPermiso(sql: Sql, permiso: PermisoEnviado, caller: Caller) {
  const call = sql`select insert_permiso(${permiso}, ${caller}) as answer`
  return write<{ data: Permiso }>(call, FAILURES)
}

/**
 * Overwrites a permission record. Returns as `data` the record, or null if the id is unknown.
 * Throws what insertPermiso throws.
 */
export async function updatePermiso(sql: Sql, id: number, permiso: PermisoEnviado, caller: Caller) {
  const call = sql`select update_permiso(${id}, ${permiso}, ${caller}) as answer`
  return write<{ data: Permiso | null }>(call, FAILURES)
}

export async function deletePermiso(sql: Sql, id: number, caller: Caller): Promise<void> {
  await write(sql`select delete_permiso(${id}, ${caller}) as answer`)
}

/**
 * Replaces all permission records of a profile in one transaction. `ifMatch` is the header
 * `If-Match`, which lists the versions that may be replaced. If it is `*` or null, any version may
 * be replaced. Returns the version of the new records, which is null if the profile is unknown.
 *
 * Throws the Failure `changed` if the records have another version, and `conflict` if a module is
 * unknown, or if the profile is unknown and there are new records. The handler has refused a module
 * that is named twice.
 */
export async function replacePermisos(
  sql: Sql,
  idPerfil: number,
  entradas: EntradaDeMatriz[],
  ifMatch: string | null,
  caller: Caller,
) {
  const call = sql`select replace_permisos(${idPerfil}, ${entradas}, ${ifMatch}, ${caller}) as answer`
  return write<{ version: string | null }>(call, MATRIZ_FAILURES)
}
