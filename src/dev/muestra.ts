import { compare, hash } from 'bcryptjs'
import postgres from 'postgres'
import { EXAMPLE_IDS } from '../examples.js'

/** The password of every sample user. */
export const SAMPLE_PASSWORD = 'llavero-muestra'

/**
 * Inserts sample data if the database has no profile besides the administrator's: profiles,
 * modules, permission records and users. They are enough for lists of several pages and for a user
 * who lacks a permission. The rows that the documentation's examples change are inserted too.
 */
export async function insertMuestra(databaseUrl: string) {
  const sql = postgres(databaseUrl, { max: 1 })
  const [row] = await sql`select count(*) > 1 as "isFilled" from perfil`
  if (!row?.isFilled) {
    await sql.begin(async (transaction) => {
      await insertSample(transaction)
      await insertExampleRows(transaction)
    })
  }
  await sql.end()
}

/** Inserts the modules, profiles, permission records and users of the sample. */
async function insertSample(sql: postgres.TransactionSql) {
  await sql`
    insert into modulo ("strNombreModulo")
    values
      ('ALMACÉN'),
      ('CAMPAÑAS'),
      ('CLIENTES'),
      ('COMPRAS'),
      ('CONTABILIDAD'),
      ('ENVÍOS'),
      ('FACTURACIÓN'),
      ('INVENTARIO'),
      ('NÓMINA'),
      ('PROVEEDORES'),
      ('REPORTES'),
      ('VENTAS')
  `
  await sql`
    insert into perfil ("strNombrePerfil")
    values
      ('SUPERVISIÓN'),
      ('CONSULTA')
  `
  // The supervisors may add and edit in every module. The others may only read a few modules.
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
        ('supervisora', 'SUPERVISIÓN', true),
        ('lucia', 'SUPERVISIÓN', true),
        ('consulta', 'CONSULTA', true),
        ('jose', 'CONSULTA', true),
        ('maria', 'CONSULTA', true),
        ('inactiva', 'CONSULTA', false)
    ) as muestra (nombre, perfil, activo)
    join perfil on "strNombrePerfil" = perfil
  `
}

/** Inserts the rows with the ids in EXAMPLE_IDS, which the documentation's examples use. */
async function insertExampleRows(sql: postgres.TransactionSql) {
  const { usuario, perfil, modulo, permiso } = EXAMPLE_IDS
  await sql`
    insert into perfil (id, "strNombrePerfil")
    overriding system value
    values
      (${perfil.edited}, 'Atención al cliente'),
      (${perfil.replaced}, 'Mostrador'),
      (${perfil.deleted}, 'Temporal')
  `
  await sql`
    insert into modulo (id, "strNombreModulo")
    overriding system value
    values
      (${modulo.edited}, 'ARCHIVO'),
      (${modulo.granted}, 'AGENDA'),
      (${modulo.deleted}, 'PRUEBAS')
  `
  await sql`
    insert into permisos_perfil (id, "idPerfil", "idModulo", "bitConsulta")
    overriding system value
    values
      (${permiso.edited}, ${perfil.edited}, ${modulo.edited}, true),
      (${permiso.deleted}, ${perfil.replaced}, ${modulo.edited}, true)
  `
  const strPwd = await hash(SAMPLE_PASSWORD, 10)
  await sql`
    insert into usuario (id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
    overriding system value
    values
      (${usuario.edited}, 'rosa', ${perfil.edited}, ${strPwd}, 'rosa@ejemplo.com'),
      (${usuario.deleted}, 'pedro', ${perfil.replaced}, ${strPwd}, 'pedro@ejemplo.com')
  `
}

interface Login {
  nombre: string
  /** Whether the user's profile is an administrator's. */
  administrador: boolean
}

/**
 * Finds the users with these names who can log in with the password. Returns them in the order of the
 * names.
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
