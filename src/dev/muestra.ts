import type { Passwords } from '../auth/password.js'
import type { Sql } from '../db.js'

/** The password of every sample user. */
export const SAMPLE_PASSWORD = 'llavero-muestra'

/** A database that has more than the one administrator profile is left as it is. */
const isEmpty = (sql: Sql) =>
  sql<[{ empty: boolean }]>`select count(*) <= 1 as empty from perfil`.then(([row]) => row.empty)

/**
 * Puts sample data into a database that has none: two profiles without the administrator flag,
 * a dozen modules, permission records and enough users to see pages and a refusal.
 */
export async function insertMuestra(sql: Sql, passwords: Passwords): Promise<void> {
  if (!(await isEmpty(sql))) return
  const hash = await passwords.hash(SAMPLE_PASSWORD)
  await sql.begin(async (tx) => {
    await tx`
      insert into modulo ("strNombreModulo")
      values ('ALMACÉN'), ('CAMPAÑAS'), ('CLIENTES'), ('COMPRAS'), ('CONTABILIDAD'), ('ENVÍOS'),
        ('FACTURACIÓN'), ('INVENTARIO'), ('NÓMINA'), ('PROVEEDORES'), ('REPORTES'), ('VENTAS')
      on conflict do nothing
    `
    await tx`
      insert into perfil ("strNombrePerfil") values ('SUPERVISIÓN'), ('CONSULTA')
    `
    await tx`
      insert into permisos_perfil ("idPerfil", "idModulo", "bitAgregar", "bitEditar",
        "bitConsulta", "bitEliminar", "bitDetalle")
      select perfil.id, modulo.id, supervisa, supervisa, true, false, true
      from perfil cross join modulo
      cross join lateral (select "strNombrePerfil" = 'SUPERVISIÓN' as supervisa)
      where perfil."strNombrePerfil" in ('SUPERVISIÓN', 'CONSULTA')
        and (supervisa or "strNombreModulo" in ('CLIENTES', 'MODULO', 'REPORTES', 'VENTAS'))
    `
    await tx`
      insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo",
        "strNumeroCelular", "idEstadoUsuario")
      select nombre, perfil.id, ${hash}, nombre || '@ejemplo.com', celular, activo
      from (values
        ('supervisora', 'SUPERVISIÓN', '5512345678', true),
        ('lucia', 'SUPERVISIÓN', null, true),
        ('consulta', 'CONSULTA', '5587654321', true),
        ('jose', 'CONSULTA', null, true),
        ('maria', 'CONSULTA', '5511112222', true),
        ('inactiva', 'CONSULTA', null, false)
      ) as muestra (nombre, perfil, celular, activo)
      join perfil on "strNombrePerfil" = perfil
    `
  })
}
