import { contains, offset, onConstraint, PAGE_SIZE, pageCount, type Sql } from '../db.js'
import type { Modulo, ModuloFiltro } from './schemas.js'

/** One page of the modules that the filter lets through, and how many pages there are. */
export async function listModulos(sql: Sql, { page = 1, search }: ModuloFiltro) {
  const matches =
    search === undefined
      ? sql`true`
      : sql`fold_case("strNombreModulo") like fold_case(${contains(search)})`
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

/** Adds a module; throws the Failure `conflict` when the name is taken. */
export async function insertModulo(sql: Sql, nombre: string): Promise<Modulo> {
  const [modulo] = await sql<[Modulo]>`
    insert into modulo ("strNombreModulo") values (${nombre}) returning id, "strNombreModulo"
  `.catch(onDuplicate)
  return modulo
}

/** Renames a module; undefined for an unknown id. Throws `conflict` when the name is taken. */
export async function updateModulo(
  sql: Sql,
  id: number,
  nombre: string,
): Promise<Modulo | undefined> {
  const [modulo] = await sql<Modulo[]>`
    update modulo set "strNombreModulo" = ${nombre} where id = ${id} returning id, "strNombreModulo"
  `.catch(onDuplicate)
  return modulo
}

const onDuplicate = onConstraint('modulo_nombre_unico', 'conflict', 'El módulo ya existe')
