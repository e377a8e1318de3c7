import { offset, PAGE_SIZE, splitPage } from '../database/page.js'
import type { Sql } from '../database/sql.js'
import type { PermisoConNombres } from './schemas.js'

/**
 * One page of all permission records with their names, and the number of pages, at least 1
 * (contract, section 4.2).
 *
 * Why it is written like this: counting the records and skipping those before the page took 260 ms
 * for the last page of 2,000,000, and this takes 4 (`npm run bench -- --only lists`). The total is the
 * sum of the counters that triggers keep on the profiles (sql/migrations/0004_versiones.sql), and the
 * page's ids come from an index alone, read from its nearer end.
 */
export async function listPermisos(sql: Sql, page: number) {
  const rows = await sql<(PermisoConNombres & { total: number })[]>`
    with total as (
      select coalesce(sum("numPermisos"), 0) as filas, ${offset(page)}::bigint as antes from perfil
    ), plan as (
      select antes, greatest(0, least(${PAGE_SIZE}, filas - antes)) as cuantas,
        antes < filas / 2 as desde_el_principio, filas
      from total
    ), pagina as (
      (
        select id from permisos_perfil order by id
        limit (select case when desde_el_principio then cuantas else 0 end from plan)
        offset (select antes from plan)
      ) union all (
        select id from permisos_perfil order by id desc
        limit (select case when desde_el_principio then 0 else cuantas end from plan)
        offset (select greatest(0, filas - antes - cuantas) from plan)
      )
    )
    select permisos_perfil.id, "idPerfil", "idModulo", "strNombrePerfil" as "nombrePerfil",
      "strNombreModulo" as "nombreModulo", "bitAgregar", "bitEditar", "bitConsulta",
      "bitEliminar", "bitDetalle", filas::integer as total
    from total
    left join (
      permisos_perfil
      join perfil on perfil.id = "idPerfil"
      join modulo on modulo.id = "idModulo"
    ) on permisos_perfil.id = any(array(select id from pagina))
    order by permisos_perfil.id
  `
  const { data, totalPages } = splitPage(rows)
  return { data, totalPages: Math.max(1, totalPages) }
}
