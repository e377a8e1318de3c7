import { type Actor, onRefusal } from '../auth/actor.js'
import { contains, offset, onConstraint, PAGE_SIZE, pageCount, type Sql } from '../database/sql.js'
import type { Perfil, PerfilBreve, PerfilEditado, PerfilFiltro, PerfilNuevo } from './schemas.js'

/** One page of the profiles that the filter lets through, and how many pages there are. */
export async function listPerfiles(sql: Sql, { page = 1, search, isAdmin }: PerfilFiltro) {
  const matches = sql`
    ${search === undefined ? sql`true` : sql`fold_case("strNombrePerfil") like fold_case(${contains(search)})`}
    and ${isAdmin === undefined ? sql`true` : sql`"bitAdministrador" = ${isAdmin}`}
  `
  const [data, [total]] = await Promise.all([
    sql<Perfil[]>`
      select id, "strNombrePerfil", "bitAdministrador"
      from perfil
      where ${matches}
      order by id desc
      limit ${PAGE_SIZE} offset ${offset(page)}
    `,
    sql<{ rows: number }[]>`select count(*)::integer as rows from perfil where ${matches}`,
  ])
  return { data, totalPages: pageCount(total?.rows ?? 0) }
}

/** All profiles by ascending id. */
export async function listPerfilesBreves(sql: Sql): Promise<PerfilBreve[]> {
  return sql<PerfilBreve[]>`select id, "strNombrePerfil" from perfil order by id`
}

/**
 * Adds a profile, an administrator with one record per module and every flag. Throws the Failure
 * `forbidden` for an administrator profile when the actor is none.
 */
export async function insertPerfil(
  sql: Sql,
  actor: Actor,
  { strNombrePerfil, bitAdministrador = false }: PerfilNuevo,
): Promise<Perfil> {
  const [perfil] = await sql<[Perfil]>`
    select id, "strNombrePerfil", "bitAdministrador"
    from insert_perfil(${sql.json(actor)}, ${strNombrePerfil}, ${bitAdministrador})
  `.catch(onRefusal)
  return perfil
}

/**
 * Renames a profile; where the administrator flag changes, replaces its permission records in the
 * same transaction (contract, section 3). Gives undefined for an unknown id; throws the Failure
 * `forbidden` when the flag changes and the actor is no administrator.
 */
export async function updatePerfil(
  sql: Sql,
  actor: Actor,
  id: number,
  { strNombrePerfil, bitAdministrador }: PerfilEditado,
): Promise<Perfil | undefined> {
  const [perfil] = await sql<Perfil[]>`
    select id, "strNombrePerfil", "bitAdministrador"
    from update_perfil(${sql.json(actor)}, ${id}, ${strNombrePerfil}, ${bitAdministrador})
  `.catch(onRefusal)
  return perfil
}

/**
 * Removes a profile with its permission records; nothing happens for an unknown id. Throws the
 * Failures `conflict` when users have it and `forbidden` when it holds more than the actor's.
 */
export async function deletePerfil(sql: Sql, actor: Actor, id: number): Promise<void> {
  await sql`select delete_perfil(${sql.json(actor)}, ${id})`
    .catch(onRefusal)
    .catch(onConstraint('usuario_perfil_fk', 'conflict'))
}
