import type { Changes, Written } from '../auth/audit.js'
import type { Actor } from '../auth/caller.js'
import { onRefusal } from '../auth/refusal.js'
import { findPage, hasText } from '../database/page.js'
import { onConstraint, type Sql } from '../database/sql.js'
import type { Perfil, PerfilBreve, PerfilEditado, PerfilFiltro, PerfilNuevo } from './schemas.js'

/** Finds one page of the profiles that match the filter, and the number of pages. */
export async function listPerfiles(sql: Sql, { page = 1, search, isAdmin }: PerfilFiltro) {
  const every = sql`true`
  const nombre = sql`"strNombrePerfil"`
  return findPage<Perfil>(sql, page, {
    rows: sql`
      select id, "strNombrePerfil", "bitAdministrador"
      from perfil
      where ${search === undefined ? every : hasText(sql, nombre, search)}
        and ${isAdmin === undefined ? every : sql`"bitAdministrador" = ${isAdmin}`}
    `,
    isSearch: search !== undefined,
  })
}

/** Finds all profiles, by ascending id. */
export async function listPerfilesBreves(sql: Sql): Promise<PerfilBreve[]> {
  return sql<PerfilBreve[]>`
    select id, "strNombrePerfil"
    from perfil
    order by id
  `
}

/**
 * Adds a profile and returns it with the changes. An administrator's profile gets one permission
 * record for each module, with all flags. Throws the Failure `forbidden` if an actor who is not an
 * administrator adds an administrator's profile.
 */
export async function insertPerfil(
  sql: Sql,
  actor: Actor,
  perfil: PerfilNuevo,
): Promise<Written<Perfil>> {
  const [row] = await sql<[{ answer: Written<Perfil> }]>`
    select insert_perfil(${sql.json(perfil)}, ${sql.json(actor)}) as answer
  `.catch(onRefusal)
  return row.answer
}

/**
 * Overwrites the name and the administrator flag of a profile, and returns the profile with the
 * changes. If the id is unknown, `data` is null. If the flag changes, the permission records are
 * replaced in the same transaction (contract, section 3). Throws the Failure `forbidden` if the
 * flag changes and the actor is not an administrator.
 */
export async function updatePerfil(
  sql: Sql,
  actor: Actor,
  id: number,
  perfil: PerfilEditado,
): Promise<Written<Perfil | null>> {
  const [row] = await sql<[{ answer: Written<Perfil | null> }]>`
    select update_perfil(${id}, ${sql.json(perfil)}, ${sql.json(actor)}) as answer
  `.catch(onRefusal)
  return row.answer
}

/**
 * Removes a profile with its permission records, and returns the changes. Throws the Failure
 * `conflict` if users have the profile. Throws `forbidden` if the profile has a permission that the
 * actor's profile lacks.
 */
export async function deletePerfil(sql: Sql, actor: Actor, id: number): Promise<Changes> {
  const [row] = await sql<[{ answer: { changes: Changes } }]>`
    select delete_perfil(${id}, ${sql.json(actor)}) as answer
  `
    .catch(onRefusal)
    .catch(onConstraint('usuario_perfil_fk', 'conflict'))
  return row.answer.changes
}
