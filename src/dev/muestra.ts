import { hash } from 'bcryptjs'
import postgres from 'postgres'

/** The password of every sample user. */
export const SAMPLE_PASSWORD = 'llavero-muestra'

/**
 * Puts sample data into a database that has no profile but the administrator's: two without the
 * flag, a dozen modules, permission records and enough users to see pages and a refusal.
 */
export async function insertMuestra(databaseUrl: string) {
  const sql = postgres(databaseUrl, { max: 1 })
  const [row] = await sql`select count(*) > 1 as "isFilled" from perfil`
  if (!row?.isFilled) await sql.begin(insertAll)
  await sql.end()
}

async function insertAll(sql: postgres.TransactionSql) {
  await sql`
    insert into modulo ("strNombreModulo")
    values ('ALMACÉN'), ('CAMPAÑAS'), ('CLIENTES'), ('COMPRAS'), ('CONTABILIDAD'), ('ENVÍOS'),
      ('FACTURACIÓN'), ('INVENTARIO'), ('NÓMINA'), ('PROVEEDORES'), ('REPORTES'), ('VENTAS')
  `
  await sql`insert into perfil ("strNombrePerfil") values ('SUPERVISIÓN'), ('CONSULTA')`
  await sql`
    insert into permisos_perfil ("idPerfil", "idModulo", "bitAgregar", "bitEditar",
      "bitConsulta", "bitEliminar", "bitDetalle")
    select perfil.id, modulo.id, supervisa, supervisa, true, false, true
    from perfil cross join modulo
    cross join lateral (select "strNombrePerfil" = 'SUPERVISIÓN' as supervisa)
    where not perfil."bitAdministrador"
      and (supervisa or "strNombreModulo" in ('CLIENTES', 'MODULO', 'REPORTES', 'VENTAS'))
  `
  await sql`
    insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "idEstadoUsuario")
    select nombre, perfil.id, ${await hash(SAMPLE_PASSWORD, 10)}, nombre || '@ejemplo.com', activo
    from (values
      ('supervisora', 'SUPERVISIÓN', true), ('lucia', 'SUPERVISIÓN', true),
      ('consulta', 'CONSULTA', true), ('jose', 'CONSULTA', true), ('maria', 'CONSULTA', true),
      ('inactiva', 'CONSULTA', false)
    ) as muestra (nombre, perfil, activo)
    join perfil on "strNombrePerfil" = perfil
  `
}
