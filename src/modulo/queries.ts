import type { Changes, Written } from '../auth/audit.js'
import type { Actor } from '../auth/caller.js'
import { onRefusal } from '../auth/refusal.js'
import { findPage, hasText } from '../database/page.js'
import { onConstraint, type Sql } from '../database/sql.js'
import { Failure } from '../http/failures.js'
import type { Modulo, ModuloFiltro } from './schemas.js'

/** Finds one page of the modules that the filter lets through, and the number of pages. */
export async function listModulos(sql: Sql, { page = 1, search }: ModuloFiltro) {
  // The names are in JavaScript's upper case, which knows more letters than fold_case.
  const upperCase = search?.toUpperCase()
  return findPage<Modulo>(sql, page, {
    rows: sql`
      select id, "strNombreModulo"
      from modulo
      where ${upperCase === undefined ? sql`true` : hasText(sql, sql`"strNombreModulo"`, upperCase)}
    `,
    isSearch: search !== undefined,
  })
}

/** All modules by ascending id. */
export async function listTodosLosModulos(sql: Sql): Promise<Modulo[]> {
  return sql<Modulo[]>`select id, "strNombreModulo" from modulo order by id`
}

/**
 * Adds a module and returns it with what has changed. Throws the Failures `conflict` when the name is taken and `forbidden`
 * when the name looks like a system module's and the actor is no administrator.
 */
export async function insertModulo(
  sql: Sql,
  actor: Actor,
  nombre: string,
): Promise<Written<Modulo>> {
  const [row] = await sql<[{ answer: Written<Modulo> }]>`
    select insert_modulo(${sql.json(named(nombre))}, ${sql.json(actor)}) as answer
  `
    .catch(onRefusal)
    .catch(onDuplicate)
  return row.answer
}

/**
 * Renames a module and returns it, null for an unknown id, with what has changed. Throws what insertModulo throws,
 * and the Failure `forbidden` also when an actor who is no administrator renames a system module or a
 * module that permission records name.
 */
export async function updateModulo(
  sql: Sql,
  actor: Actor,
  id: number,
  nombre: string,
): Promise<Written<Modulo | null>> {
  const [row] = await sql<[{ answer: Written<Modulo | null> }]>`
    select update_modulo(${id}, ${sql.json(named(nombre))}, ${sql.json(actor)}) as answer
  `
    .catch(onRefusal)
    .catch(onDuplicate)
  return row.answer
}

/**
 * Removes a module with its permission records and returns what has changed. Throws the Failures
 * `conflict` for a system module and `forbidden` when a profile that has a record for the module
 * holds more than the actor's.
 */
export async function deleteModulo(sql: Sql, actor: Actor, id: number): Promise<Changes> {
  const [row] = await sql<[{ answer: { deleted: boolean; changes: Changes } }]>`
    select delete_modulo(${id}, ${sql.json(actor)}) as answer
  `.catch(onRefusal)
  if (!row.answer.deleted) throw new Failure('conflict')
  return row.answer.changes
}

/** A module's name as sql/transactions takes it: with the form that all names like it share. */
const named = (strNombreModulo: string) => ({
  strNombreModulo,
  semejante: strNombreModulo
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .toUpperCase()
    .trim(),
})

const onDuplicate = onConstraint('modulo_nombre_unico', 'conflict')
