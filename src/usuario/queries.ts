import type { Changes, Written } from '../auth/audit.js'
import type { Actor } from '../auth/caller.js'
import { onRefusal } from '../auth/refusal.js'
import { findPage, hasText } from '../database/page.js'
import { onConstraint, type Sql } from '../database/sql.js'
import type { ImagenAlojada } from './imagen.js'
import type {
  Usuario,
  UsuarioEditado,
  UsuarioFiltro,
  UsuarioNuevo,
  UsuarioVisto,
} from './schemas.js'

/** Finds one page of the users that the filter lets through, and the number of pages. */
export async function listUsuarios(
  sql: Sql,
  { page = 1, search, idPerfil, estado }: UsuarioFiltro,
) {
  return findPage<UsuarioVisto>(sql, page, {
    rows: sql`
      select ${columns(sql)}
      from usuario
      where ${search === undefined ? sql`true` : isNamed(sql, search)}
        and ${idPerfil === undefined ? sql`true` : sql`"idPerfil" = ${idPerfil}`}
        and ${estado === undefined ? sql`true` : sql`"idEstadoUsuario" = ${estado}`}
    `,
    isSearch: search !== undefined,
    seen: sql`
      select pagina.*, "strNombrePerfil" as "nombrePerfil"
      from pagina
      join perfil on perfil.id = "idPerfil"
    `,
  })
}

const columns = (sql: Sql) => sql`
  usuario.id, "strNombreUsuario", "idPerfil", "strCorreo", "strNumeroCelular", "idEstadoUsuario",
  "imagenUrl"
`

const isNamed = (sql: Sql, search: string) => sql`(
  ${hasText(sql, sql`"strNombreUsuario"`, search)} or ${hasText(sql, sql`"strCorreo"`, search)}
)`

/** The look-up of one user, for a caller who may be limited by the own profile. */
export interface UsuarioLookup {
  id: number
  /**
   * The caller's profile: users whose profiles hold more than this one are out of reach. Null for a
   * caller without that limit.
   */
  limite: number | null
}

/** A user, and whether the profile of the caller lets the caller see it. */
export interface UsuarioHallado extends UsuarioVisto {
  alcanzable: boolean
}

/**
 * Finds the users of several look-ups in one statement, each at the place of its look-up: undefined
 * for an unknown id.
 */
export async function findUsuarios(
  sql: Sql,
  lookups: UsuarioLookup[],
): Promise<(UsuarioHallado | undefined)[]> {
  const numbered = lookups.map((lookup, n) => ({ n, ...lookup }))
  const rows = await sql<(UsuarioHallado & { n: number })[]>`
    select n, visto.*,
      limite is null or not exists (select from beyond("idPerfil", limite)) as alcanzable
    from jsonb_to_recordset(${sql.json(numbered)}) as lookup (n integer, id integer, limite integer)
    cross join lateral (
      select ${columns(sql)}, "strNombrePerfil" as "nombrePerfil"
      from usuario
      join perfil on perfil.id = "idPerfil"
      where usuario.id = lookup.id
      limit 1
    ) as visto
  `
  const found = new Map(rows.map((row) => [row.n, row]))
  return lookups.map((_, n) => found.get(n))
}

/** A user as it is written: with the hash of the password, and the image as the host keeps it. */
type ConImagen<T> = Omit<T, 'imagenBase64'> & { imagen: ImagenAlojada | undefined }

/** The same as sql/transactions takes it. A field that is undefined is missing there. */
const record = ({ imagen, ...usuario }: ConImagen<UsuarioNuevo | UsuarioEditado>) => ({
  ...usuario,
  imagenUrl: imagen?.url,
  imagenPublicId: imagen?.publicId,
})

/**
 * Adds a user and returns it with what has changed. Throws the Failures `conflict` for a taken email or name or an unknown
 * profile, and `forbidden` when the profile holds more than the actor's.
 */
export async function insertUsuario(
  sql: Sql,
  actor: Actor,
  usuario: ConImagen<UsuarioNuevo>,
): Promise<Written<Usuario>> {
  const [row] = await sql<[{ answer: Written<Usuario> }]>`
    select insert_usuario(${sql.json(record(usuario))}, ${sql.json(actor)}) as answer
  `.catch(onUsuarioFailure)
  return row.answer
}

/** The name of the hosted image that the user had and has no more; null without one. */
interface ConImagenAnterior {
  imagenAnterior: string | null
}

/**
 * Overwrites a user. A missing password or image leaves the one that is stored; a new password ends
 * all sessions of the user. Returns the user, what has changed, and the name of the hosted image that
 * the new one replaces; undefined for an unknown id. Throws what insertUsuario throws, and the Failure
 * `forbidden` also when the profile that the user is in holds more than the actor's.
 */
export async function updateUsuario(
  sql: Sql,
  actor: Actor,
  id: number,
  cambios: ConImagen<UsuarioEditado>,
): Promise<(Written<Usuario> & ConImagenAnterior) | undefined> {
  const [row] = await sql<[{ answer: Written<Usuario | null> & ConImagenAnterior }]>`
    select update_usuario(${id}, ${sql.json(record(cambios))}, ${sql.json(actor)}) as answer
  `.catch(onUsuarioFailure)
  const { data, ...rest } = row.answer
  return data ? { data, ...rest } : undefined
}

/**
 * Removes a user. Returns the name of the user's hosted image, null without one, and what has changed.
 * Throws the Failure `forbidden` when the user's profile holds more than the actor's.
 */
export async function deleteUsuario(
  sql: Sql,
  actor: Actor,
  id: number,
): Promise<ConImagenAnterior & { changes: Changes }> {
  const [row] = await sql<[{ answer: ConImagenAnterior & { changes: Changes } }]>`
    select delete_usuario(${id}, ${sql.json(actor)}) as answer
  `.catch(onRefusal)
  return row.answer
}

/**
 * Throws what insertUsuario (`id` null) or updateUsuario would throw now because of the actor or the
 * profiles. It spares a hash or an upload for a write that would be refused; the write itself
 * decides again.
 */
export async function checkUsuarioWrite(
  sql: Sql,
  actor: Actor,
  id: number | null,
  idPerfil: number,
): Promise<void> {
  await sql`select check_usuario_write(${id}, ${idPerfil}, ${sql.json(actor)})`.catch(
    onUsuarioFailure,
  )
}

const CORREO_REGISTRADO = 'El correo electrónico ya está registrado'
const NOMBRE_REGISTRADO = 'El nombre de usuario ya está registrado'
const PERFIL_DESCONOCIDO = 'El perfil indicado no existe'
/** The messages for the conflicts that a user can have. */
export const CONFLICTOS = [CORREO_REGISTRADO, NOMBRE_REGISTRADO, PERFIL_DESCONOCIDO]

const onCorreo = onConstraint('usuario_correo_unico', 'conflict', CORREO_REGISTRADO)
const onNombre = onConstraint('usuario_nombre_unico', 'conflict', NOMBRE_REGISTRADO)
const onPerfil = onConstraint('usuario_perfil_fk', 'conflict', PERFIL_DESCONOCIDO)

const onUsuarioFailure = (error: unknown) =>
  Promise.reject(error).catch(onRefusal).catch(onCorreo).catch(onNombre).catch(onPerfil)
