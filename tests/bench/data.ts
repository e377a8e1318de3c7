import { createHmac } from 'node:crypto'
import { hashSync } from 'bcryptjs'
import postgres, { type Sql } from 'postgres'
import { migrate } from '../../src/database/migrations.js'

export const JWT_SECRET = 'un secreto de medidas de 32 caracteres o mas'
export const PASSWORD = 'clave de medidas'
export const MODULOS = 200
export const PERFILES = 1000
/** Administrators, one for each client that writes. */
export const ADMINISTRADORES = 8

export interface Usuario {
  id: number
  idPerfil: number
  nombre: string
}

export const openDatabase = (url: string) => postgres(url, { max: 1, onnotice: () => {} })

/**
 * Fills a new database: `perfiles` profiles with some 100 records each on 200 modules, one user a
 * profile who may read the own map alone, and the administrators with a profile of their own.
 */
export async function seed(url: string, perfiles: number) {
  const sql = openDatabase(url)
  await migrate(sql)
  await insertModulos(sql)
  await sql`
    insert into perfil ("strNombrePerfil")
    select 'Perfil ' || numero from generate_series(1, ${perfiles}::integer) as numero
  `
  await sql`insert into perfil ("strNombrePerfil", "bitAdministrador") values ('Admin', true)`
  // Without the triggers, which would look up each of the keys: minutes for 2,000,000 records.
  await sql`set session_replication_role = replica`
  await sql`
    insert into permisos_perfil ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta",
      "bitEliminar", "bitDetalle")
    select perfil.id, modulo.id, azar & 1 > 0, azar & 2 > 0, azar & 4 > 0, azar & 8 > 0,
      azar & 16 > 0
    from perfil
    cross join modulo
    cross join hashint4(perfil.id * ${MODULOS} + modulo.id) as azar
    where not "bitAdministrador" and "strNombreModulo" like 'MODULO DE%'
      and abs(azar / 32) % (select count(*) from modulo where "strNombreModulo" like 'MODULO DE%')
        < 100
    order by perfil.id, modulo.id
  `
  await sql`set session_replication_role = origin`
  await sql`
    update perfil set "numPermisos" = filas
    from (select "idPerfil", count(*) as filas from permisos_perfil group by 1) as cuenta
    where perfil.id = "idPerfil"
  `
  await sql`
    insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
    select nombre, perfil.id, ${hashSync(PASSWORD, 10)}, nombre || '@ejemplo.com'
    from perfil
    cross join generate_series(1, case when "bitAdministrador" then ${ADMINISTRADORES} else 1 end)
      as numero
    cross join concat('usuario', perfil.id, '_', numero) as nombre
  `
  await sql`vacuum analyze`
  await sql.end()
}

/** Adds modules until there are MODULOS of them. */
const insertModulos = (sql: Sql) => sql`
  insert into modulo ("strNombreModulo")
  select 'MODULO DE PRUEBA ' || numero
  from generate_series(1, ${MODULOS} - (select count(*) from modulo)) as numero
`

/** Profiles of one kind, each with one user. Both bear the kind's name with a number. */
export interface Grupo {
  nombre: string
  perfiles: number
  administrador?: boolean
  /** Whether each profile has a record with every flag for every module. */
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

/** The users of one group, each with the first permission record of the profile. */
export async function readGrupo(url: string, nombre: string) {
  const sql = openDatabase(url)
  const usuarios = await sql<(Usuario & { idPermiso: number | null })[]>`
    select id, "idPerfil", "strNombreUsuario" as nombre,
      (
        select min(id) from permisos_perfil where "idPerfil" = usuario."idPerfil"
      ) as "idPermiso"
    from usuario
    where "strNombreUsuario" ~ ${`^${nombre}[0-9]+$`}
    order by id
  `
  await sql.end()
  return [...usuarios]
}

/** The ids of all modules. */
export async function readModulos(url: string) {
  const sql = openDatabase(url)
  const modulos = await sql<{ id: number }[]>`select id from modulo order by id`
  await sql.end()
  return modulos.map(({ id }) => id)
}

/** Takes away what the service alone keeps up to date at a write: the plain way has no triggers. */
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

/** The users: those who may read their own map, and those who may do everything. */
export async function readData(url: string) {
  const sql = openDatabase(url)
  const usuarios = await sql<(Usuario & { administrador: boolean })[]>`
    select usuario.id, "idPerfil", "strNombreUsuario" as nombre, "bitAdministrador" as administrador
    from usuario
    join perfil on perfil.id = "idPerfil"
    order by usuario.id
  `
  await sql.end()
  return {
    lectores: usuarios.filter(({ administrador }) => !administrador),
    administradores: usuarios.filter(({ administrador }) => administrador),
  }
}

/** The header with a token such as the service issues. */
export function authorization({ id, idPerfil, nombre }: Usuario) {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const iat = Math.floor(Date.now() / 1000)
  const payload = { id, idPerfil, nombre, iat, exp: iat + 28_800 }
  const content = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(payload)}`
  const signature = createHmac('sha256', JWT_SECRET).update(content).digest('base64url')
  return { authorization: `Bearer ${content}.${signature}` }
}

/** Each user's own map. */
export const mapRequests = (usuarios: Usuario[]) =>
  usuarios.map((usuario) => ({ path: mapPath(usuario), headers: authorization(usuario) }))

export const mapPath = ({ idPerfil }: Usuario) => `/api/permisos/mis-permisos/${idPerfil}`
