import type { FastifyInstance } from 'fastify'
import { type Config, ConfigError } from '../config.js'
import { onConstraint, type Sql } from '../db.js'
import { Failure } from '../failure.js'

/**
 * Makes the configured user an active administrator while there is no other; changes nothing when
 * there is one (decisions, section 3). Throws a ConfigError when another user has the name in
 * other case, or the email.
 */
export async function ensureAdministrador(
  { sql, passwords, log }: Pick<FastifyInstance, 'sql' | 'passwords' | 'log'>,
  administrador: NonNullable<Config['administrador']>,
): Promise<void> {
  const { strNombreUsuario, strPwd, strCorreo } = administrador
  const hash = await passwords.hash(strPwd)
  const ensured = await ensure(sql, strNombreUsuario, hash, strCorreo)
  if (ensured) log.warn({ strNombreUsuario }, 'administrator set up from ADMIN_*')
  else log.info('an active administrator exists: ADMIN_* is ignored')
}

async function ensure(sql: Sql, nombre: string, hash: string, correo: string) {
  // A transaction is under no time limit of the pool: replicas that start together wait here.
  const ensuring = sql.begin(async (tx) => {
    await tx`set local statement_timeout = 0`
    const [row] = await tx<[{ ensured: boolean }]>`
      select ensure_administrador(${nombre}, ${hash}, ${correo}) as ensured
    `
    return row.ensured
  })
  return ensuring
    .catch(onConstraint('usuario_correo_unico', 'conflict', 'ADMIN_EMAIL: another user has it'))
    .catch(
      onConstraint(
        'usuario_nombre_unico',
        'conflict',
        'ADMIN_USERNAME: another user has it, in other upper or lower case',
      ),
    )
    .catch((error) => {
      throw error instanceof Failure ? new ConfigError(error.message) : error
    })
}
