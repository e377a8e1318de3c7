import { offset, PAGE_SIZE, splitPage } from '../database/page.js'
import type { Sql } from '../database/sql.js'
import type { PermisoConNombres } from './schemas.js'

/**
 * Finds one page of all permission records, by ascending id, with the names of their profiles and
 * modules. Also returns the number of pages, which is at least 1 (contract, section 4.2).
 *
 * The number of records is the sum of the counters in the profiles' rows, which triggers keep right
 * (sql/migrations/0004_versiones.sql). The ids of the page are read from the index alone, from its
 * start or from its end, whichever is nearer to the page. So the last page of 2,000,000 records
 * takes 4 ms (`npm run bench -- --only lists`). If the statement counted the records and skipped
 * those before the page, it would take 260 ms.
 *
 * In the statement, `filas` is the number of all records, `antes` is the number of records before
 * the page, and `cuantas` is the number of records on the page. `desde_el_principio` is true if the
 * ids are read from the start of the index. One of the two parts of `pagina` is always empty. If
 * the page is empty, the left join returns one row with the id null, as splitPage expects.
 */
export async function listPermisos(sql: Sql, page = 1) {
  const rows = await sql<(PermisoConNombres & { total: number })[]>`
    with cuenta as (
      select
        coalesce(sum("numPermisos"), 0) as filas,
        ${offset(page)}::bigint as antes
      from perfil
    ),
    plan as (
      select
        filas,
        antes,
        greatest(0, least(${PAGE_SIZE}, filas - antes)) as cuantas,
        antes < filas / 2 as desde_el_principio
      from cuenta
    ),
    pagina as (
      (
        select id
        from permisos_perfil
        order by id
        limit (
          select case when desde_el_principio then cuantas else 0 end
          from plan
        )
        offset (select antes from plan)
      )
      union all
      (
        select id
        from permisos_perfil
        order by id desc
        limit (
          select case when desde_el_principio then 0 else cuantas end
          from plan
        )
        offset (
          select greatest(0, filas - antes - cuantas)
          from plan
        )
      )
    )
    select
      permisos_perfil.id,
      "idPerfil",
      "idModulo",
      "strNombrePerfil" as "nombrePerfil",
      "strNombreModulo" as "nombreModulo",
      "bitAgregar",
      "bitEditar",
      "bitConsulta",
      "bitEliminar",
      "bitDetalle",
      filas::integer as total
    from cuenta
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
