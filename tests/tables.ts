import type postgres from 'postgres'
import { ADMIN } from './app.js'
import { type Flag, flags } from './endpoints.js'

/** The tables of the records. */
export const TABLES = ['perfil', 'modulo', 'permisos_perfil', 'usuario'] as const

/** Reads all rows of TABLES and of `more`, each table in the order of its first column, the key. */
export async function readTables(sql: postgres.Sql, ...more: string[]) {
  const tables = [...TABLES, ...more].map(async (table) => {
    const rows = await sql`select * from ${sql(table)} order by 1`
    return [table, [...rows]]
  })
  const entries = await Promise.all(tables)
  return Object.fromEntries(entries) as Record<(typeof TABLES)[number], Record<string, any>[]>
}

// Each of these functions inserts a row and returns its id.

const idOf = async (query: Promise<{ id: number }[]>) => (await query)[0]?.id as number

export const insertPerfil = (sql: postgres.Sql, nombre: string, administrador = false) =>
  idOf(sql`
    insert into perfil ("strNombrePerfil", "bitAdministrador")
    values (${nombre}, ${administrador})
    returning id
  `)

export const insertModulo = (sql: postgres.Sql, nombre: string) =>
  idOf(sql`insert into modulo ("strNombreModulo") values (${nombre}) returning id`)

export const insertPermiso = (
  sql: postgres.Sql,
  idPerfil: number,
  idModulo: number,
  ...granted: Flag[]
) =>
  idOf(sql`
    insert into permisos_perfil ${sql({ idPerfil, idModulo, ...flags(...granted) })} returning id
  `)

/** The user has the administrator's password. */
export const insertUsuario = (sql: postgres.Sql, nombre: string, idPerfil: number) =>
  idOf(sql`
    insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
    select ${nombre}, ${idPerfil}, "strPwd", ${`${nombre}@x.es`}
    from usuario
    where "strNombreUsuario" = ${ADMIN.strNombreUsuario}
    returning id
  `)
