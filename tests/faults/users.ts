import type postgres from 'postgres'

const NAME = 'usuario'

/** Returns the name of a user; `number` counts from 1. */
export const nombreOf = (number: number) => `${NAME}${number}`

/** Inserts `count` users with the administrator's profile and password. */
export async function addUsers(sql: postgres.Sql, count: number) {
  await sql`
    insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
    select nombre, "idPerfil", "strPwd", nombre || '@ejemplo.com'
    from usuario
    cross join generate_series(1, ${count}::integer) as numero
    cross join concat(${NAME}::text, numero) as nombre
    where id = 1
  `
}
