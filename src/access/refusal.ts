import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isPostgresError } from '../database/sql.js'
import { Failure, type FailureArguments } from '../http/answers/failures.js'
import type { Actor } from './caller.js'
import type { Accion } from './schemas.js'

/** What a caller lacks. */
export type Needs =
  /**
   * A permission. If the caller's profile must hold it because another profile does, `perfil` is the id
   * of that profile.
   */
  | { modulo: string; accion: Accion; perfil?: number }
  /**
   * An administrator's profile. `perfil` is the id of the administrator's profile that the write
   * concerns, if there is one.
   */
  | { administrador: true; perfil?: number }

/** What the log says about a refused request, and the body of the answer does not. */
interface Refusal {
  needs?: Needs
  /** Why the password of an existing user was refused. */
  reason?: 'inactive' | 'password'
  /** In a login, the user who has the name in the body. */
  who?: { id: number; nombre: string }
}

/** A Failure that is logged with the level `audit`, because it is known who was refused. */
export class RefusedFailure extends Failure {
  constructor(
    readonly refusal: Refusal,
    ...failure: FailureArguments
  ) {
    super(...failure)
  }
}

/** Returns the Failure `forbidden`. By default, the caller needs an administrator's profile. */
export const forbidden = (needs: Needs = { administrador: true }) =>
  new RefusedFailure({ needs }, 'forbidden')

/**
 * A function for the `.catch()` of a write. Throws the Failure for each SQLSTATE of the service's own
 * (sql/README.md): `unauthenticated` for LL401, `forbidden` for LL403, and `changed` for LL412.
 * Rethrows every other error.
 */
export function onRefusal(error: unknown): never {
  if (!isPostgresError(error)) throw error
  if (error.code === 'LL401') throw new Failure('unauthenticated')
  if (error.code === 'LL403') throw forbidden(error.detail && JSON.parse(error.detail))
  if (error.code === 'LL412') throw new Failure('changed')
  throw error
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Returns the id of the record that the route writes, if the path does not contain the id. */
    target?(request: FastifyRequest): unknown
  }
}

/**
 * Adds a hook that describes each RefusedFailure for the log, and what is lacking in the header
 * `x-needs`.
 */
export function reportRefusals(app: FastifyInstance) {
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { failure, caller } = request
    if (!(failure instanceof RefusedFailure)) return done()

    const { who = userOf(caller), needs, reason } = failure.refusal
    if (needs) reply.header('x-needs', describeNeeds(needs))
    request.logAs = {
      level: 'audit',
      msg: 'refused',
      who,
      route: request.routeOptions.url,
      target: targetOf(request),
      reason,
      needs,
    }
    done()
  })
}

/** Returns the caller as the log contains the caller. */
function userOf({ id, nombre, idPerfil, perfil }: Actor) {
  return { id, nombre, idPerfil, perfil }
}

/** Returns the id of the record that a request concerns. Returns null if it is unknown. */
function targetOf(request: FastifyRequest) {
  // The first parameter in the path is the id of the record.
  const [pathId] = Object.values(request.params as object)
  return pathId ? Number(pathId) : (request.routeOptions.config.target?.(request) ?? null)
}

/**
 * Returns the value of `x-needs`: `MODULO:bitFlag`, as in the OpenAPI document, or `administrador`. The
 * module's name is percent-encoded, because a header contains only ASCII.
 */
export function describeNeeds(needs: Needs) {
  if ('administrador' in needs) return 'administrador'
  return `${encodeURIComponent(needs.modulo)}:${needs.accion}`
}
