import {
  type Actor,
  offset,
  onConstraint,
  onRefusal,
  PAGE_SIZE,
  pageCount,
  type Sql,
} from '../db.js'
import type {
  Entrada,
  Permiso,
  PermisoConNombres,
  PermisoEnviado,
  PermisosAccion,
} from './schemas.js'

/**
 * One page of all permission records with their names, and the number of pages, at least 1. The
 * total is the sum of the counters on the profiles, and the page is read from its nearer end: both
 * ends cost the same however many records there are: at 2,000,000 the last page takes 4 ms and not
 * 260, measured by `npm run bench -- --only lists`.
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
  return {
    data: rows.filter(({ id }) => id !== null),
    totalPages: Math.max(1, pageCount(rows[0]?.total ?? 0)),
  }
}

/** The permission map of a profile, by module name, and its version; undefined for no profile. */
export async function findMapaDePermisos(
  sql: Sql,
  idPerfil: number,
): Promise<{ version: string; permisos: Record<string, PermisosAccion> } | undefined> {
  const rows = await sql<(PermisosAccion & { version: string })[]>`
    select "versionPermisos" as version, "strNombreModulo" as "nombreModulo", "bitAgregar",
      "bitEditar", "bitConsulta", "bitEliminar", "bitDetalle"
    from perfil
    left join (permisos_perfil join modulo on modulo.id = "idModulo") on "idPerfil" = perfil.id
    where perfil.id = ${idPerfil}
    order by permisos_perfil.id
  `
  const [first] = rows
  if (!first) return undefined
  const permisos = Object.fromEntries(
    rows
      .filter(({ nombreModulo }) => nombreModulo !== null)
      .map(({ version: _, ...accion }) => [accion.nombreModulo, accion]),
  )
  return { version: first.version, permisos }
}

/** The permission records of a profile by ascending id; none for an unknown profile. */
export async function listPermisosByPerfil(sql: Sql, idPerfil: number): Promise<Permiso[]> {
  return sql<Permiso[]>`
    select id, "idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar",
      "bitDetalle"
    from permisos_perfil
    where "idPerfil" = ${idPerfil}
    order by id
  `
}

/**
 * Adds a permission record. Throws the Failures `invalid` for an unknown profile or module,
 * `conflict` when the profile has a record for the module, and `forbidden` when the profile holds
 * more than the actor's, before or after.
 */
export async function insertPermiso(
  sql: Sql,
  actor: Actor,
  permiso: PermisoEnviado,
): Promise<Permiso> {
  const [creado] = await sql<[Permiso]>`
    select id, "idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar",
      "bitDetalle"
    from insert_permiso(${sql.json(actor)}, ${permiso.idPerfil}, ${permiso.idModulo}, ${permiso.bitAgregar ?? false},
      ${permiso.bitEditar ?? false}, ${permiso.bitConsulta ?? false},
      ${permiso.bitEliminar ?? false}, ${permiso.bitDetalle ?? false})
  `
    .catch(onRefusal)
    .catch(onUnknownReference('invalid'))
    .catch(onDuplicate)
  return creado
}

/** Overwrites a permission record; gives undefined for an unknown id and throws as insertPermiso. */
export async function updatePermiso(
  sql: Sql,
  actor: Actor,
  id: number,
  permiso: PermisoEnviado,
): Promise<Permiso | undefined> {
  const [actualizado] = await sql<Permiso[]>`
    select id, "idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar",
      "bitDetalle"
    from update_permiso(${sql.json(actor)}, ${id}, ${permiso.idPerfil}, ${permiso.idModulo},
      ${permiso.bitAgregar ?? false}, ${permiso.bitEditar ?? false},
      ${permiso.bitConsulta ?? false}, ${permiso.bitEliminar ?? false},
      ${permiso.bitDetalle ?? false})
  `
    .catch(onRefusal)
    .catch(onUnknownReference('invalid'))
    .catch(onDuplicate)
  return actualizado
}

/** Removes a permission record; nothing happens for an unknown id. `forbidden` as insertPermiso. */
export async function deletePermiso(sql: Sql, actor: Actor, id: number): Promise<void> {
  await sql`select delete_permiso(${sql.json(actor)}, ${id})`.catch(onRefusal)
}

/**
 * Replaces the whole matrix of a profile in one transaction. Throws the Failure `conflict` for an
 * unknown profile or module and for a module that stands twice, `forbidden` as insertPermiso;
 * nothing has changed then.
 */
export async function replacePermisos(
  sql: Sql,
  actor: Actor,
  idPerfil: number,
  entradas: Entrada[],
): Promise<void> {
  await sql`select replace_permisos(${sql.json(actor)}, ${idPerfil}, ${sql.json(entradas)})`
    .catch(onRefusal)
    .catch(onUnknownReference('conflict'))
    .catch(onDuplicate)
}

function onUnknownReference(code: 'invalid' | 'conflict') {
  const message = 'El perfil o el módulo no existe'
  const onPerfil = onConstraint('permisos_perfil_perfil_fk', code, message)
  const onModulo = onConstraint('permisos_perfil_modulo_fk', code, message)
  return (error: unknown) => Promise.reject(error).catch(onPerfil).catch(onModulo)
}

const onDuplicate = onConstraint(
  'permisos_perfil_unico',
  'conflict',
  'El perfil ya tiene permisos sobre ese módulo',
)
