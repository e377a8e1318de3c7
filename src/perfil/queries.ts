import type { Caller } from '../access/caller.js'
import { type FailureByConstraint, write } from '../access/write.js'
import { findPage, hasText } from '../database/page.js'
import { ALWAYS, fragment, type Sql } from '../database/sql.js'
import type { Perfil, PerfilBreve, PerfilEditado, PerfilFiltro, PerfilNuevo } from './schemas.js'

const NOMBRE = fragment`"strNombrePerfil"`
const FAILURES: FailureByConstraint = { usuario_perfil_fk: ['conflict'] }

/** Finds one page of the profiles that match the filter, and the number of pages. */
export async function listPerfiles(sql: Sql, filtro: PerfilFiltro) {
  const { search, isAdmin } = filtro
  const rows = fragment`
    select id, "strNombrePerfil", "bitAdministrador"
    from perfil
    where ${hasText(NOMBRE, search)}
      and ${isAdmin === undefined ? ALWAYS : fragment`"bitAdministrador" = ${isAdmin}`}
  `
  return findPage<Perfil>(sql, filtro, rows)
}

/** Finds all profiles, by ascending id. */
export async function listTodosLosPerfiles(sql: Sql) {
  return sql<PerfilBreve[]>`
    select id, "strNombrePerfil"
    from perfil
    order by id
  `
}

/**
 * Adds a profile and returns it as `data`. An administrator's profile gets one permission record
 * for each module, with all flags.
 */
export async function insertPerfil(sql: Sql, perfil: PerfilNuevo, caller: Caller) {
  const call = sql`select insert_perfil(${perfil}, ${caller}) as answer`
  return write<{ data: Perfil }>(call)
}

/**
 * Overwrites the name and the administrator flag of a profile. Returns as `data` the profile, or
 * null if the id is unknown. If the flag changes, the permission records are replaced in the same
 * transaction (contract, section 3).
 */
export async function updatePerfil(sql: Sql, id: number, perfil: PerfilEditado, caller: Caller) {
  const call = sql`select update_perfil(${id}, ${perfil}, ${caller}) as answer`
  return write<{ data: Perfil | null }>(call)
}

/**
 * Removes a profile with its permission records. Throws the Failure `conflict` if users have the
 * profile.
 */
export async function deletePerfil(sql: Sql, id: number, caller: Caller): Promise<void> {
  const call = sql`select delete_perfil(${id}, ${caller}) as answer`
  await write(call, FAILURES)
}
