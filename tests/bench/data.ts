import postgres from 'postgres'
import { migrate } from '../../src/database/migrations.js'
import { sign } from '../token.js'

export const MODULOS = 200

export interface Usuario {
  id: number
  idPerfil: number
  nombre: string
}

/** Profiles of one kind, each with one user. Profile and user have the same name. */
export interface Grupo {
  /** The prefix of each name in the group; a number follows, counted from 1. */
  nombre: string
  /** How many profiles there are. */
  perfiles: number
  administrador?: boolean
  /** Whether each profile has a record for every module. The default is true. */
  conPermisos?: boolean
  /** Whether these records have the flag `bitEliminar`, beside all others. The default is true. */
  bitEliminar?: boolean
}

export const openDatabase = (url: string) => postgres(url, { max: 1, onnotice: () => {} })

/** Fills a new database with MODULOS modules and these groups of profiles and users. */
export async function seedGrupos(url: string, grupos: Grupo[]) {
  const sql = openDatabase(url)
  await migrate(sql)
  await sql`
    insert into modulo ("strNombreModulo")
    select 'MODULO DE PRUEBA ' || numero
    from generate_series(1, ${MODULOS} - (select count(*) from modulo)) as numero
  `
  for (const grupo of grupos) {
    const { nombre, perfiles, administrador = false } = grupo
    const { conPermisos = true, bitEliminar = true } = grupo
    await sql`
      insert into perfil ("strNombrePerfil", "bitAdministrador")
      select ${nombre} || numero, ${administrador}
      from generate_series(1, ${perfiles}::integer) as numero
    `
    await sql`
      insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
      select "strNombrePerfil", id, 'no hash of a password', "strNombrePerfil" || '@ejemplo.com'
      from perfil
      where "strNombrePerfil" ~ ${`^${nombre}[0-9]+$`}
      order by id
    `
    if (conPermisos) {
      await sql`
        insert into permisos_perfil ("idPerfil", "idModulo", "bitAgregar", "bitEditar",
          "bitConsulta", "bitEliminar", "bitDetalle")
        select perfil.id, modulo.id, true, true, true, ${bitEliminar}, true
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

/** Returns a header with a token like those that the service issues. */
export function authorization({ id, idPerfil, nombre }: Usuario) {
  const iat = Math.floor(Date.now() / 1000)
  const token = sign({ id, idPerfil, nombre, iat, exp: iat + 28_800 })
  return { authorization: `Bearer ${token}` }
}
