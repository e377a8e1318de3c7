import { type Actor, onRefusal } from '../auth/actor.js'
import { onConstraint, type Sql } from '../database/sql.js'
import type { Entrada, Permiso, PermisoEnviado, PermisosAccion } from './schemas.js'

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

const columns = (sql: Sql) => sql`
  id, "idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar", "bitDetalle"
`

const values = (sql: Sql, { idPerfil, idModulo, ...flags }: PermisoEnviado) => sql`
  ${idPerfil}, ${idModulo}, ${flags.bitAgregar ?? false}, ${flags.bitEditar ?? false},
  ${flags.bitConsulta ?? false}, ${flags.bitEliminar ?? false}, ${flags.bitDetalle ?? false}
`

/** The permission records of a profile by ascending id; none for an unknown profile. */
export async function listPermisosByPerfil(sql: Sql, idPerfil: number): Promise<Permiso[]> {
  return sql<Permiso[]>`
    select ${columns(sql)}
    from permisos_perfil
    where "idPerfil" = ${idPerfil}
    order by id
  `
}

/** What is said of an unknown profile or module. */
export const DESCONOCIDO = 'El perfil o el módulo no existe'

/**
 * Adds a permission record. Throws the Failures `invalid` for an unknown profile or module,
 * `forbidden` when the profile holds more than the actor's or is to, and `conflict` when the profile
 * has a record for the module.
 */
export async function insertPermiso(
  sql: Sql,
  actor: Actor,
  permiso: PermisoEnviado,
): Promise<Permiso> {
  const [creado] = await sql<[Permiso]>`
    select ${columns(sql)}
    from insert_permiso(${sql.json(actor)}, ${values(sql, permiso)})
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
    select ${columns(sql)}
    from update_permiso(${sql.json(actor)}, ${id}, ${values(sql, permiso)})
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
 * unknown profile or module, `forbidden` as insertPermiso; nothing has changed then.
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
}

function onUnknownReference(code: 'invalid' | 'conflict') {
  const onPerfil = onConstraint('permisos_perfil_perfil_fk', code, DESCONOCIDO)
  const onModulo = onConstraint('permisos_perfil_modulo_fk', code, DESCONOCIDO)
  return (error: unknown) => Promise.reject(error).catch(onPerfil).catch(onModulo)
}

const onDuplicate = onConstraint('permisos_perfil_unico', 'conflict')
