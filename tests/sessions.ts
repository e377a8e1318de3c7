import type { testApp } from './app.js'

let calls = 0

/** Inserts `count` users with the administrator's profile; returns an id and a token for each. */
export async function addSessions(
  { app, pool }: Awaited<ReturnType<typeof testApp>>,
  count: number,
) {
  calls += 1
  const users = await pool<{ id: number; idPerfil: number; nombre: string }[]>`
    insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
    select nombre, "idPerfil", "strPwd", nombre || '@ejemplo.com'
    from usuario
    cross join generate_series(1, ${count}::integer) as numero
    cross join concat('sesion', ${calls}::integer, '_', numero) as nombre
    where id = 1
    returning id, "idPerfil", "strNombreUsuario" as nombre
  `
  return users.map((user) => ({ id: user.id, token: app.jwt.sign(user as never) }))
}
