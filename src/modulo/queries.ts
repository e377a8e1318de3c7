import { type Actor, onRefusal } from '../auth/actor.js'
import { contains, offset, onConstraint, PAGE_SIZE, pageCount, type Sql } from '../database/sql.js'
import { Failure } from '../http/failures.js'
import type { Modulo, ModuloFiltro } from './schemas.js'

/** One page of the modules that the filter lets through, and how many pages there are. */
export async function listModulos(sql: Sql, { page = 1, search }: ModuloFiltro) {
  const matches =
    search === undefined
      ? sql`true`
      : // The names are in JavaScript's upper case, which knows more letters than fold_case.
        sql`fold_case("strNombreModulo") like fold_case(${contains(search.toUpperCase())})`
  const [data, [total]] = await Promise.all([
    sql<Modulo[]>`
      select id, "strNombreModulo"
      from modulo
      where ${matches}
      order by id desc
      limit ${PAGE_SIZE} offset ${offset(page)}
    `,
    sql<{ rows: number }[]>`select count(*)::integer as rows from modulo where ${matches}`,
  ])
  return { data, totalPages: pageCount(total?.rows ?? 0) }
}

/** All modules by ascending id. */
export async function listTodosLosModulos(sql: Sql): Promise<Modulo[]> {
  return sql<Modulo[]>`select id, "strNombreModulo" from modulo order by id`
}

/**
 * Adds a module. Throws the Failures `conflict` when the name is taken and `forbidden` when it is
 * like a system module's and the actor is no administrator.
 */
export async function insertModulo(sql: Sql, actor: Actor, nombre: string): Promise<Modulo> {
  const [modulo] = await sql<[Modulo]>`
    select id, "strNombreModulo" from insert_modulo(${sql.json(actor)}, ${nombre}, ${semejante(nombre)})
  `
    .catch(onRefusal)
    .catch(onDuplicate)
  return modulo
}

/**
 * Renames a module; undefined for an unknown id. Throws as insertModulo, and `forbidden` also for
 * a system module and one that permission records name.
 */
export async function updateModulo(
  sql: Sql,
  actor: Actor,
  id: number,
  nombre: string,
): Promise<Modulo | undefined> {
  const [modulo] = await sql<Modulo[]>`
    select id, "strNombreModulo"
    from update_modulo(${sql.json(actor)}, ${id}, ${nombre}, ${semejante(nombre)})
  `
    .catch(onRefusal)
    .catch(onDuplicate)
  return modulo
}

/**
 * Removes a module with its permission records; nothing happens for an unknown id. Throws the
 * Failures `conflict` for a system module and `forbidden` when a profile that has records for it
 * holds more than the actor's.
 */
export async function deleteModulo(sql: Sql, actor: Actor, id: number): Promise<void> {
  const [row] = await sql<[{ deleted: boolean }]>`
    select delete_modulo(${sql.json(actor)}, ${id}) as deleted
  `.catch(onRefusal)
  if (!row.deleted) throw new Failure('conflict')
}

/** The name after what looks alike is made the same. */
const semejante = (nombre: string) =>
  nombre
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .toUpperCase()
    .trim()

const onDuplicate = onConstraint('modulo_nombre_unico', 'conflict')
