import type { FastifyBaseLogger } from 'fastify'
import type { Passwords } from '../access/password.js'
import { write } from '../access/write.js'
import { type Config, ConfigError } from '../config.js'
import type { Sql } from '../database/sql.js'

/** Why the user in ADMIN_* cannot be written, by the constraint that forbids it. */
const TAKEN: Record<string, string> = {
  usuario_correo_unico: 'ADMIN_EMAIL: another user has it',
  usuario_nombre_unico: 'ADMIN_USERNAME: another user has it, in other upper or lower case',
}

/**
 * Makes the user in ADMIN_* an active administrator if there is no active administrator. Does
 * nothing if the variables are not set. Throws a ConfigError if another user has the
 * email, or has the name in different upper or lower case.
 */
export async function ensureAdministrador(
  sql: Sql,
  passwords: Passwords,
  { ADMIN_USERNAME, ADMIN_PASSWORD, ADMIN_EMAIL }: Config,
  log: FastifyBaseLogger,
): Promise<void> {
  if (!ADMIN_USERNAME) return
  const usuario = {
    strNombreUsuario: ADMIN_USERNAME,
    strPwd: await passwords.hash(ADMIN_PASSWORD),
    strCorreo: ADMIN_EMAIL,
  }
  const call = sql`select ensure_administrador(${usuario}) as answer`
  const { ensured } = await write<{ ensured: boolean }>(call).catch((error) => {
    const reason = TAKEN[error.constraint_name]
    throw reason ? new ConfigError(reason) : error
  })

  if (ensured) log.info('administrator set up from ADMIN_*, as none was active')
  else log.info('an active administrator exists: ADMIN_* is ignored')
}
