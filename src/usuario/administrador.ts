import type { FastifyInstance } from 'fastify'
import type { Changes } from '../auth/audit.js'
import { type Config, ConfigError } from '../config.js'
import { onConstraint, type Sql } from '../database/sql.js'
import { Failure } from '../http/failures.js'

/** A record that ensure_administrador() has written: its id and its changes, for the log. */
interface WrittenRecord {
  id: number
  changes: Changes
}

/** The result of ensure_administrador(). `perfil` is null if the profile existed. */
type Ensured =
  | { ensured: false }
  | { ensured: true; perfil: WrittenRecord | null; usuario: WrittenRecord }

type AdminKeys = 'ADMIN_USERNAME' | 'ADMIN_PASSWORD' | 'ADMIN_EMAIL'

const onCorreo = onConstraint(
  'usuario_correo_unico',
  'conflict',
  'ADMIN_EMAIL: another user has it',
)
const onNombre = onConstraint(
  'usuario_nombre_unico',
  'conflict',
  'ADMIN_USERNAME: another user has it, in other upper or lower case',
)

/**
 * Makes the user in ADMIN_* an active administrator if there is no active administrator. Does
 * nothing if one of the three variables is missing. Throws a ConfigError if another user has the
 * email, or has the name in different upper or lower case.
 */
export async function ensureAdministrador(
  sql: Sql,
  { passwords, log }: Pick<FastifyInstance, 'passwords' | 'log'>,
  { ADMIN_USERNAME, ADMIN_PASSWORD, ADMIN_EMAIL }: Pick<Config, AdminKeys>,
): Promise<void> {
  if (!ADMIN_USERNAME || !ADMIN_PASSWORD || !ADMIN_EMAIL) return
  const usuario = {
    strNombreUsuario: ADMIN_USERNAME,
    strPwd: await passwords.hash(ADMIN_PASSWORD),
    strCorreo: ADMIN_EMAIL,
  }
  const [row] = await sql<[{ answer: Ensured }]>`
    select ensure_administrador(${sql.json(usuario)}) as answer
  `
    .catch(onCorreo)
    .catch(onNombre)
    .catch((error) => {
      throw error instanceof Failure ? new ConfigError(error.message) : error
    })

  if (row.answer.ensured) auditSetup(log, ADMIN_USERNAME, row.answer)
  else log.info('an active administrator exists: ADMIN_* is ignored')
}

/**
 * Logs one line for the user. If the profile is new, logs another line for the profile first. The
 * lines have the level of an audit line, and its keys `target` and `changes`.
 */
function auditSetup(
  log: FastifyInstance['log'],
  strNombreUsuario: string,
  { perfil, usuario }: Extract<Ensured, { ensured: true }>,
) {
  if (perfil) {
    const line = { target: perfil.id, changes: perfil.changes }
    log.audit(line, 'administrator profile created from ADMIN_*')
  }
  const line = { strNombreUsuario, target: usuario.id, changes: usuario.changes }
  log.audit(line, 'administrator set up from ADMIN_*, as none was active')
}
