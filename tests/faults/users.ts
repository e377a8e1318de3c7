import type postgres from 'postgres'
import { ADMIN } from '../app.js'
import type { Service } from './service.js'

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

/** Logs a user of addUsers in and returns the token. */
export async function loginAs(service: Service, number: number): Promise<string> {
  const credentials = { ...ADMIN, strNombreUsuario: nombreOf(number), captchaToken: 'humano' }
  const { status, body } = await service.call('POST', '/api/auth/login', credentials)
  if (status !== 200) throw new Error(`login failed: ${JSON.stringify(body)}`)
  return body.token
}
