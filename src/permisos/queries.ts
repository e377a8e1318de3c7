import type { Changes, Written } from '../auth/audit.js'
import type { Actor } from '../auth/caller.js'
import { onRefusal } from '../auth/refusal.js'
import { onConstraint, type Sql } from '../database/sql.js'
import type { FailureArguments } from '../http/failures.js'
import type { Entrada, Permiso, PermisoEnviado, PermisosAccion } from './schemas.js'

/** A permission map and its version. */
interface MapaLeido {
  version: string
  /** The permissions, by the name of the module. */
  permisos: Record<string, PermisosAccion>
}

/**
 * Finds the permission map of a profile and the map's version. Returns undefined if the profile is
 * unknown.
 */
export async function findMapaDePermisos(
  sql: Sql,
  idPerfil: number,
): Promise<MapaLeido | undefined> {
  const rows = await sql<(PermisosAccion & { version: string })[]>`
    select
      "versionPermisos" as version,
      "strNombreModulo" as "nombreModulo",
      "bitAgregar",
      "bitEditar",
      "bitConsulta",
      "bitEliminar",
      "bitDetalle"
    from perfil
    left join (
      permisos_perfil
      join modulo on modulo.id = "idModulo"
    ) on "idPerfil" = perfil.id
    where perfil.id = ${idPerfil}
    order by permisos_perfil.id
  `
  const [first] = rows
  if (!first) return undefined

  const entries: [string, PermisosAccion][] = []
  for (const { version: _, ...accion } of rows) {
    const { nombreModulo } = accion
    // If the profile has no records, the statement returns one row, in which `nombreModulo` is
    // null.
    if (nombreModulo !== null) entries.push([nombreModulo, accion])
  }
  return {
    version: first.version,
    permisos: Object.fromEntries(entries),
  }
}

/** Finds the permission records of a profile, by ascending id. An unknown profile has none. */
export async function listPermisosByPerfil(sql: Sql, idPerfil: number): Promise<Permiso[]> {
  return sql<Permiso[]>`
    select
      id,
      "idPerfil",
      "idModulo",
      "bitAgregar",
      "bitEditar",
      "bitConsulta",
      "bitEliminar",
      "bitDetalle"
    from permisos_perfil
    where "idPerfil" = ${idPerfil}
    order by id
  `
}

/** The message for an unknown profile or an unknown module. */
export const DESCONOCIDO = 'El perfil o el módulo no existe'

/**
 * Adds a permission record and returns it with the changes. Throws one of these Failures:
 * - `invalid` if the profile or the module is unknown,
 * - `forbidden` if the profile has a permission that the actor's profile lacks, or if the record
 *   would grant more than the actor's profile holds,
 * - `conflict` if the profile has a record for the module already.
 */
export async function insertPermiso(
  sql: Sql,
  actor: Actor,
  permiso: PermisoEnviado,
): Promise<Written<Permiso>> {
  const [row] = await sql<[{ answer: Written<Permiso> }]>`
    select insert_permiso(${sql.json(permiso)}, ${sql.json(actor)}) as answer
  `
    .catch(onRefusal)
    .catch(onUnknownReference('invalid', DESCONOCIDO))
    .catch(onDuplicate)
  return row.answer
}

/**
 * Overwrites a permission record and returns it with the changes. If the id is unknown, `data` is
 * null. Throws what insertPermiso throws. `forbidden` also means that the profile that had the
 * record before has a permission that the actor's profile lacks.
 */
export async function updatePermiso(
  sql: Sql,
  actor: Actor,
  id: number,
  permiso: PermisoEnviado,
): Promise<Written<Permiso | null>> {
  const [row] = await sql<[{ answer: Written<Permiso | null> }]>`
    select update_permiso(${id}, ${sql.json(permiso)}, ${sql.json(actor)}) as answer
  `
    .catch(onRefusal)
    .catch(onUnknownReference('invalid', DESCONOCIDO))
    .catch(onDuplicate)
  return row.answer
}

/**
 * Removes a permission record and returns the changes. Throws the Failure `forbidden` if the
 * profile that has the record also has a permission that the actor's profile lacks.
 */
export async function deletePermiso(sql: Sql, actor: Actor, id: number): Promise<Changes> {
  const [row] = await sql<[{ answer: { changes: Changes } }]>`
    select delete_permiso(${id}, ${sql.json(actor)}) as answer
  `.catch(onRefusal)
  return row.answer.changes
}

/**
 * Replaces all permission records of a profile in one transaction, and returns the changes. Throws
 * the Failure `conflict` if a module is unknown, or if the profile is unknown and there are
 * entries. Throws `forbidden` if the profile has a permission that the actor's profile lacks, or if
 * an entry would grant more than the actor's profile holds.
 */
export async function replacePermisos(
  sql: Sql,
  actor: Actor,
  idPerfil: number,
  entradas: Entrada[],
): Promise<Changes> {
  const [row] = await sql<[{ answer: { changes: Changes } }]>`
    select replace_permisos(${idPerfil}, ${sql.json(entradas)}, ${sql.json(actor)}) as answer
  `
    .catch(onRefusal)
    .catch(onUnknownReference('conflict'))
  return row.answer.changes
}

/**
 * Returns a function for the `.catch()` of a write. It throws the given Failure if the write refers
 * to an unknown profile or module, and rethrows every other error.
 */
function onUnknownReference(...failure: FailureArguments) {
  const onPerfil = onConstraint('permisos_perfil_perfil_fk', ...failure)
  const onModulo = onConstraint('permisos_perfil_modulo_fk', ...failure)
  return (error: unknown) => Promise.reject(error).catch(onPerfil).catch(onModulo)
}

const onDuplicate = onConstraint('permisos_perfil_unico', 'conflict')
