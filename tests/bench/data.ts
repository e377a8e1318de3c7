import { createHmac } from 'node:crypto'
import { hashSync } from 'bcryptjs'
import postgres, { type Sql } from 'postgres'
import { migrate } from '../../src/database/migrations.js'

export const JWT_SECRET = 'un secreto de medidas de 32 caracteres o mas'
export const PASSWORD = 'clave de medidas'
export const MODULOS = 200
export const PERFILES = 1000
/**
 * The number of administrators. tests/faults/overload.test.ts distributes its writes and lists
 * among them, because the statements of one user wait for each other.
 */
export const ADMINISTRADORES = 200

export interface Usuario {
  id: number
  idPerfil: number
  nombre: string
}

export const openDatabase = (url: string) => postgres(url, { max: 1, onnotice: () => {} })

/**
 * Fills a new database with MODULOS modules and `perfiles` profiles. Each profile has one user and
 * about 100 permission records, but none for a system module. So its user may read no permission
 * map except that of the profile. One further profile is an administrator's and has ADMINISTRADORES
 * users.
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
  // Without triggers the insert is faster: checking the keys of 2,000,000 records takes minutes.
  await sql`set session_replication_role = replica`
  // The five lowest bits of `azar` are the flags. Its other bits choose about 100 modules.
  await sql`
    insert into permisos_perfil ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta",
      "bitEliminar", "bitDetalle")
    select perfil.id, modulo.id, (azar & 1) > 0, (azar & 2) > 0, (azar & 4) > 0, (azar & 8) > 0,
      (azar & 16) > 0
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

/** Inserts modules until there are MODULOS of them. */
export const insertModulos = (sql: Sql) => sql`
  insert into modulo ("strNombreModulo")
  select 'MODULO DE PRUEBA ' || numero
  from generate_series(1, ${MODULOS} - (select count(*) from modulo)) as numero
`

/** Reads the users. Those who are not administrators are `lectores`. */
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

/** Returns a header with a token like those that the service issues. */
export function authorization({ id, idPerfil, nombre }: Usuario) {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const iat = Math.floor(Date.now() / 1000)
  const payload = { id, idPerfil, nombre, iat, exp: iat + 28_800 }
  const content = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(payload)}`
  const signature = createHmac('sha256', JWT_SECRET).update(content).digest('base64url')
  return { authorization: `Bearer ${content}.${signature}` }
}

/** Returns for each user a request for that user's permission map. */
export const mapRequests = (usuarios: Usuario[]) =>
  usuarios.map((usuario) => ({ path: mapPath(usuario), headers: authorization(usuario) }))

export const mapPath = ({ idPerfil }: Usuario) => `/api/permisos/mis-permisos/${idPerfil}`
