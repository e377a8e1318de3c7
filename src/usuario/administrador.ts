import type { FastifyBaseLogger } from 'fastify'
import type { Passwords } from '../access/password.js'
import { type Config, ConfigError } from '../config.js'
import { onConstraint, type Sql } from '../database/sql.js'
import { Failure } from '../http/answers/failures.js'

type AdminKeys = 'ADMIN_USERNAME' | 'ADMIN_PASSWORD' | 'ADMIN_EMAIL'

const onConflicto = onConstraint({
  usuario_correo_unico: ['conflict', 'ADMIN_EMAIL: another user has it'],
  usuario_nombre_unico: [
    'conflict',
    'ADMIN_USERNAME: another user has it, in other upper or lower case',
  ],
})

/**
 * Makes the user in ADMIN_* an active administrator if there is no active administrator. Does
 * nothing if one of the three variables is missing. Throws a ConfigError if another user has the
 * email, or has the name in different upper or lower case.
 */
export async function ensureAdministrador(
  sql: Sql,
  passwords: Passwords,
  { ADMIN_USERNAME, ADMIN_PASSWORD, ADMIN_EMAIL }: Pick<Config, AdminKeys>,
  log: FastifyBaseLogger,
): Promise<void> {
  if (!ADMIN_USERNAME || !ADMIN_PASSWORD || !ADMIN_EMAIL) return
  const usuario = {
    strNombreUsuario: ADMIN_USERNAME,
    strPwd: await passwords.hash(ADMIN_PASSWORD),
    strCorreo: ADMIN_EMAIL,
  }
  const [row] = await sql<[{ ensured: boolean }]>`
    select (ensure_administrador(${sql.json(usuario)}) -> 'ensured')::boolean as ensured
  `
    .catch(onConflicto)
    .catch((error) => {
      throw error instanceof Failure ? new ConfigError(error.message) : error
    })

  if (row.ensured) log.info('administrator set up from ADMIN_*, as none was active')
  else log.info('an active administrator exists: ADMIN_* is ignored')
}
