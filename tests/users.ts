import type postgres from 'postgres'
import type { testApp } from './app.js'

/** Returns the name of a user of addUsers; `number` counts from 1. */
export const nombreOf = (number: number) => `usuario${number}`

/**
 * Inserts `count` users with the administrator's profile and password, and returns them. Further
 * calls go on counting, if no user has been added or deleted otherwise.
 */
export const addUsers = (sql: postgres.Sql, count: number) =>
  sql<{ id: number; idPerfil: number; nombre: string }[]>`
    insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
    select nombre, "idPerfil", "strPwd", nombre || '@ejemplo.com'
    from usuario
    cross join generate_series(1, ${count}::integer) as numero
    cross join concat('usuario', numero + (select count(*) - 1 from usuario)) as nombre
    where id = 1
    returning id, "idPerfil", "strNombreUsuario" as nombre
  `

/** Inserts `count` users as addUsers does; returns an id and a token for each. */
export async function addSessions(
  { app, sql }: Awaited<ReturnType<typeof testApp>>,
  count: number,
) {
  const users = await addUsers(sql, count)
  return users.map((user) => ({ id: user.id, token: app.jwt.sign(user as never) }))
}
