import { hashSync } from 'bcryptjs'
import { migrate } from '../../src/database/migrations.js'
import { insertModulos, openDatabase, PASSWORD, type Usuario } from './data.js'

/** Profiles of one kind, each with one user. Profile and user have the same name. */
export interface Grupo {
  /** The prefix of each name in the group; a number follows, counted from 1. */
  nombre: string
  /** How many profiles there are. */
  perfiles: number
  administrador?: boolean
  /** Whether each profile has a record with every flag for every module. The default is true. */
  conPermisos?: boolean
}

/** Fills a new database with MODULOS modules and these groups of profiles and users. */
export async function seedGrupos(url: string, grupos: Grupo[]) {
  const sql = openDatabase(url)
  await migrate(sql)
  await insertModulos(sql)
  for (const { nombre, perfiles, administrador = false, conPermisos = true } of grupos) {
    await sql`
      insert into perfil ("strNombrePerfil", "bitAdministrador")
      select ${nombre} || numero, ${administrador}
      from generate_series(1, ${perfiles}::integer) as numero
    `
    await sql`
      insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
      select "strNombrePerfil", id, ${hashSync(PASSWORD, 4)}, "strNombrePerfil" || '@ejemplo.com'
      from perfil
      where "strNombrePerfil" ~ ${`^${nombre}[0-9]+$`}
      order by id
    `
    if (conPermisos) {
      await sql`
        insert into permisos_perfil ("idPerfil", "idModulo", "bitAgregar", "bitEditar",
          "bitConsulta", "bitEliminar", "bitDetalle")
        select perfil.id, modulo.id, true, true, true, true, true
        from perfil
        cross join modulo
        where "strNombrePerfil" ~ ${`^${nombre}[0-9]+$`}
        order by perfil.id, modulo.id
      `
    }
  }
  await sql`vacuum analyze`
  await sql.end()
}

/** A user of a group. */
export interface Miembro extends Usuario {
  /** The first permission record of the user's profile; null for a profile without records. */
  idPermiso: number | null
}

/** Returns the users of the group with this name by ascending id; none for an unknown group. */
export async function readGrupo(url: string, nombre: string): Promise<Miembro[]> {
  const sql = openDatabase(url)
  const usuarios = await sql<Miembro[]>`
    select id, "idPerfil", "strNombreUsuario" as nombre,
      (
        select min(id) from permisos_perfil where "idPerfil" = usuario."idPerfil"
      ) as "idPermiso"
    from usuario
    where "strNombreUsuario" ~ ${`^${nombre}[0-9]+$`}
    order by id
  `
  await sql.end()
  return usuarios
}

/** Returns the ids of all modules in ascending order. */
export async function readModulos(url: string) {
  const sql = openDatabase(url)
  const modulos = await sql<{ id: number }[]>`select id from modulo order by id`
  await sql.end()
  return modulos.map(({ id }) => id)
}

/**
 * Drops all triggers. They maintain the versions of the permission maps and the counters of the
 * permission records, which the plain way does not use.
 */
export async function dropTriggers(url: string) {
  const sql = openDatabase(url)
  const triggers = await sql<{ tabla: string; nombre: string }[]>`
    select tgrelid::regclass::text as tabla, tgname as nombre from pg_trigger where not tgisinternal
  `
  for (const { tabla, nombre } of triggers) {
    await sql`drop trigger ${sql(nombre)} on ${sql(tabla)}`
  }
  await sql.end()
}
