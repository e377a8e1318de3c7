import { compare, hash } from 'bcryptjs'
import postgres from 'postgres'
import { EXAMPLE_IDS } from '../examples.js'

/** The password of every sample user. */
export const SAMPLE_PASSWORD = 'llavero-muestra'

/**
 * Inserts sample profiles, modules, permission records and users, unless the database has more than
 * one profile. A new database has one, the administrator's. With the sample, the lists of users,
 * modules and permission records have several pages, and there are users who lack permissions.
 */
export async function insertMuestra(databaseUrl: string) {
  const sql = postgres(databaseUrl, { max: 1 })
  const [row] = await sql`select count(*) > 1 as "isFilled" from perfil`
  if (!row?.isFilled) {
    await sql.begin(async (transaction) => {
      await insertExampleRows(transaction)
      await raiseSequences(transaction)
      await insertOtherRows(transaction)
    })
  }
  await sql.end()
}

/** Inserts the rows whose ids the documentation's examples use (examples.ts). */
async function insertExampleRows(sql: postgres.TransactionSql) {
  const { usuario, perfil, modulo, permiso } = EXAMPLE_IDS
  await sql`
    insert into perfil (id, "strNombrePerfil")
    overriding system value
    values
      (${perfil.supervision}, 'SUPERVISIÓN'),
      (${perfil.consulta}, 'CONSULTA')
  `
  await sql`
    insert into modulo (id, "strNombreModulo")
    overriding system value
    values
      (${modulo.almacen}, 'ALMACÉN'),
      (${modulo.campanas}, 'CAMPAÑAS'),
      (${modulo.clientes}, 'CLIENTES'),
      (${modulo.compras}, 'COMPRAS'),
      (${modulo.reportes}, 'REPORTES'),
      (${modulo.ventas}, 'VENTAS')
  `
  await sql`
    insert into permisos_perfil (
      id,
      "idPerfil",
      "idModulo",
      "bitAgregar",
      "bitEditar",
      "bitConsulta",
      "bitDetalle"
    )
    overriding system value
    values
      (${permiso.compras}, ${perfil.supervision}, ${modulo.compras}, true, true, true, true),
      (${permiso.ventas}, ${perfil.supervision}, ${modulo.ventas}, true, true, true, true)
  `
  const strPwd = await hash(SAMPLE_PASSWORD, 10)
  await sql`
    insert into usuario (
      id,
      "strNombreUsuario",
      "idPerfil",
      "strPwd",
      "strCorreo",
      "strNumeroCelular"
    )
    overriding system value
    values
      (
        ${usuario.lucia},
        'lucia',
        ${perfil.supervision},
        ${strPwd},
        'lucia@ejemplo.com',
        '5587654321'
      ),
      (
        ${usuario.jose},
        'jose',
        ${perfil.consulta},
        ${strPwd},
        'jose@ejemplo.com',
        null
      )
  `
}

/**
 * Makes the ids of new rows follow the highest id of each table. The pages of users, profiles and
 * modules begin with the highest id, so new rows come first there.
 */
async function raiseSequences(sql: postgres.TransactionSql) {
  for (const table of ['perfil', 'modulo', 'permisos_perfil', 'usuario']) {
    await sql`
      select setval(pg_get_serial_sequence(${table}, 'id'), max(id))
      from ${sql(table)}
    `
  }
}

/** Inserts further modules and users, and the permission records that are still missing. */
async function insertOtherRows(sql: postgres.TransactionSql) {
  await sql`
    insert into modulo ("strNombreModulo")
    values
      ('CONTABILIDAD'),
      ('ENVÍOS'),
      ('FACTURACIÓN'),
      ('INVENTARIO'),
      ('NÓMINA'),
      ('PROVEEDORES')
  `
  // SUPERVISIÓN may do nearly everything in all modules, and CONSULTA may read four of them.
  await sql`
    insert into permisos_perfil (
      "idPerfil",
      "idModulo",
      "bitAgregar",
      "bitEditar",
      "bitConsulta",
      "bitEliminar",
      "bitDetalle"
    )
    select perfil.id, modulo.id, supervisa, supervisa, true, false, true
    from perfil
    cross join modulo
    cross join lateral (
      select "strNombrePerfil" = 'SUPERVISIÓN' as supervisa
    ) as flag
    where not perfil."bitAdministrador"
      and (
        supervisa
        or "strNombreModulo" in ('CLIENTES', 'MODULO', 'REPORTES', 'VENTAS')
      )
    on conflict ("idPerfil", "idModulo") do nothing
  `
  const strPwd = await hash(SAMPLE_PASSWORD, 10)
  await sql`
    insert into usuario (
      "strNombreUsuario",
      "idPerfil",
      "strPwd",
      "strCorreo",
      "idEstadoUsuario"
    )
    select
      nombre,
      perfil.id,
      ${strPwd},
      nombre || '@ejemplo.com',
      activo
    from (
      values
        ('maria', 'CONSULTA', true),
        ('inactiva', 'CONSULTA', false),
        ('consulta', 'CONSULTA', true),
        ('supervisora', 'SUPERVISIÓN', true)
    ) as muestra (nombre, perfil, activo)
    join perfil on "strNombrePerfil" = perfil
  `
}

interface Login {
  nombre: string
  /** Whether the user's profile is an administrator's. */
  administrador: boolean
}

/**
 * Finds the users with these names who can log in with the password. Returns the users in the order
 * of the names.
 */
export async function findLogins(databaseUrl: string, nombres: string[], password: string) {
  const sql = postgres(databaseUrl, { max: 1 })
  const usuarios = await sql<(Login & { hash: string })[]>`
    select
      "strNombreUsuario" as nombre,
      "strPwd" as hash,
      "bitAdministrador" as administrador
    from usuario
    join perfil on perfil.id = "idPerfil"
    where "strNombreUsuario" = any(${nombres})
      and "idEstadoUsuario"
    order by array_position(${nombres}, "strNombreUsuario")
  `
  await sql.end()

  const logins: Login[] = []
  for (const usuario of usuarios) {
    const isValid = await compare(password, usuario.hash)
    if (isValid) logins.push(usuario)
  }
  return logins
}
