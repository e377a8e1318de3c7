import type { Caller } from '../access/caller.js'
import { type FailureByConstraint, write } from '../access/write.js'
import { findPage, hasText } from '../database/page.js'
import { fragment, type Sql } from '../database/sql.js'
import type { Modulo, ModuloEnviado, ModuloFiltro } from './schemas.js'

const NOMBRE = fragment`"strNombreModulo"`
const FAILURES: FailureByConstraint = { modulo_nombre_unico: ['conflict'] }

/** Finds one page of the modules that match the filter, and the number of pages. */
export async function listModulos(sql: Sql, filtro: ModuloFiltro) {
  // Names are stored in upper case, as JavaScript converts them. hasText ignores the case of ASCII
  // and Spanish letters only, so the text is converted in the same way as the names.
  const text = filtro.search?.toUpperCase()
  const rows = fragment`
    select id, "strNombreModulo"
    from modulo
    where ${hasText(NOMBRE, text)}
  `
  return findPage<Modulo>(sql, filtro, rows)
}

/** Finds all modules, by ascending id. */
export async function listTodosLosModulos(sql: Sql) {
  return sql<Modulo[]>`
    select id, "strNombreModulo"
    from modulo
    order by id
  `
}

/**
 * Adds a module and returns it as `data`. Throws the Failure `conflict` if the name is taken.
 */
export async function insertModulo(sql: Sql, modulo: ModuloEnviado, caller: Caller) {
  const call = sql`select insert_modulo(${moduloRecord(modulo)}, ${caller}) as answer`
  return write<{ data: Modulo }>(call, FAILURES)
}

/**
 * Renames a module. Returns as `data` the module, or null if the id is unknown. Throws what
 * insertModulo throws.
 */
export async function updateModulo(sql: Sql, id: number, modulo: ModuloEnviado, caller: Caller) {
  const call = sql`select update_modulo(${id}, ${moduloRecord(modulo)}, ${caller}) as answer`
  return write<{ data: Modulo | null }>(call, FAILURES)
}

/**
 * Removes a module with its permission records. Returns as `deleted` false if it is a system
 * module, which is not removed, and true otherwise.
 */
export async function deleteModulo(sql: Sql, id: number, caller: Caller) {
  const call = sql`select delete_modulo(${id}, ${caller}) as answer`
  return write<{ deleted: boolean }>(call)
}

/**
 * Returns the record for insert_modulo and update_modulo. `semejante` is the name after NFKC
 * normalisation, in upper case and trimmed, without control, format, private-use, unassigned and
 * default-ignorable characters and without separators of lines and paragraphs. It is compared with
 * the names of the system modules, so that a caller who is no administrator cannot imitate them,
 * for example with fullwidth letters or a zero-width space. Similar letters of another alphabet,
 * such as Cyrillic, and blank characters such as U+2800 are not recognised.
 */
const moduloRecord = (modulo: ModuloEnviado) => ({
  ...modulo,
  semejante: modulo.strNombreModulo
    .normalize('NFKC')
    .replace(/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, '')
    .toUpperCase()
    .trim(),
})
