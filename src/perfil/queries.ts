import type { Caller } from '../access/schemas.js'
import { write } from '../access/write.js'
import { findPage, hasText, TRUE } from '../database/page.js'
import { part, type Sql } from '../database/sql.js'
import type { Perfil, PerfilBreve, PerfilEditado, PerfilFiltro, PerfilNuevo } from './schemas.js'

const NOMBRE = part`"strNombrePerfil"`

/** Finds one page of the profiles that match the filter, and the number of pages. */
export async function listPerfiles(sql: Sql, filtro: PerfilFiltro) {
  const { search, isAdmin } = filtro
  const rows = part`
    select id, "strNombrePerfil", "bitAdministrador"
    from perfil
    where ${hasText(NOMBRE, search)}
      and ${isAdmin === undefined ? TRUE : part`"bitAdministrador" = ${isAdmin}`}
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
 * Adds a profile and returns it as `data`. An administrator's profile gets one permission record for
 * each module, with all flags. Throws the Failures of every write (see `write`).
 */
export async function insertPerfil(sql: Sql, caller: Caller, perfil: PerfilNuevo) {
  const call = sql`select insert_perfil(${perfil}, ${caller}) as answer`
  return write<{ data: Perfil }>(call)
}

/**
 * Overwrites the name and the administrator flag of a profile. Returns as `data` the profile, or
 * null if the id is unknown. If the flag changes, the permission records are replaced in the same
 * transaction (contract, section 3). Throws what insertPerfil throws.
 */
export async function updatePerfil(sql: Sql, caller: Caller, id: number, perfil: PerfilEditado) {
  const call = sql`select update_perfil(${id}, ${perfil}, ${caller}) as answer`
  return write<{ data: Perfil | null }>(call)
}

/**
 * Removes a profile with its permission records. Besides the Failures of every write (see `write`) it
 * throws `conflict` if users have the profile.
 */
export async function deletePerfil(sql: Sql, caller: Caller, id: number): Promise<void> {
  const call = sql`select delete_perfil(${id}, ${caller}) as answer`
  await write(call, { usuario_perfil_fk: ['conflict'] })
}
