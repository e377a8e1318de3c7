import { hash } from 'bcryptjs'
import postgres from 'postgres'

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
    const strPwd = await hash(SAMPLE_PASSWORD, 10)
    await sql.begin((transaction) => insertRows(transaction, strPwd))
  }
  await sql.end()
}

/** Inserts the rows of the sample. `strPwd` is the hash of the users' password. */
async function insertRows(sql: postgres.TransactionSql, strPwd: string) {
  await sql`
    insert into perfil ("strNombrePerfil")
    values ('SUPERVISIÓN'), ('CONSULTA')
  `
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
  `
  await sql`
    insert into usuario (
      "strNombreUsuario",
      "idPerfil",
      "strPwd",
      "strCorreo",
      "strNumeroCelular",
      "idEstadoUsuario"
    )
    select
      nombre,
      perfil.id,
      ${strPwd},
      nombre || '@ejemplo.com',
      celular,
      activo
    from (
      values
        ('lucia', 'SUPERVISIÓN', '5587654321', true),
        ('jose', 'CONSULTA', null, true),
        ('maria', 'CONSULTA', null, true),
        ('inactiva', 'CONSULTA', null, false),
        ('consulta', 'CONSULTA', null, true),
        ('supervisora', 'SUPERVISIÓN', null, true)
    ) as muestra (nombre, perfil, celular, activo)
    join perfil on "strNombrePerfil" = perfil
  `
}
