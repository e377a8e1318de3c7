import type { Changes, Written } from '../auth/audit.js'
import type { Actor } from '../auth/caller.js'
import { onRefusal } from '../auth/refusal.js'
import { findPage, hasText } from '../database/page.js'
import { onConstraint, type Sql } from '../database/sql.js'
import type { Perfil, PerfilBreve, PerfilEditado, PerfilFiltro, PerfilNuevo } from './schemas.js'

/** Finds one page of the profiles that the filter lets through, and the number of pages. */
export async function listPerfiles(sql: Sql, { page = 1, search, isAdmin }: PerfilFiltro) {
  return findPage<Perfil>(sql, page, {
    rows: sql`
      select id, "strNombrePerfil", "bitAdministrador"
      from perfil
      where ${search === undefined ? sql`true` : hasText(sql, sql`"strNombrePerfil"`, search)}
        and ${isAdmin === undefined ? sql`true` : sql`"bitAdministrador" = ${isAdmin}`}
    `,
    isSearch: search !== undefined,
  })
}

/** All profiles by ascending id. */
export async function listPerfilesBreves(sql: Sql): Promise<PerfilBreve[]> {
  return sql<PerfilBreve[]>`select id, "strNombrePerfil" from perfil order by id`
}

/**
 * Adds a profile and returns it with what has changed. An administrator's profile gets one permission record per module,
 * with every flag. Throws the Failure `forbidden` for an administrator's profile when the actor is
 * no administrator.
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
 * Renames a profile and returns it, null for an unknown id, with what has changed. When the administrator flag
 * changes, the permission records are replaced in the same transaction (contract, section 3). Throws
 * the Failure `forbidden` when the flag changes and the actor is no administrator.
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
 * Removes a profile with its permission records and returns what has changed. Throws the Failures
 * `conflict` when users have the profile and `forbidden` when it holds more than the actor's.
 */
export async function deletePerfil(sql: Sql, actor: Actor, id: number): Promise<Changes> {
  const [row] = await sql<[{ answer: { changes: Changes } }]>`
    select delete_perfil(${id}, ${sql.json(actor)}) as answer
  `
    .catch(onRefusal)
    .catch(onConstraint('usuario_perfil_fk', 'conflict'))
  return row.answer.changes
}
