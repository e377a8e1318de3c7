import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Failure, type FailureArguments } from '../http/answers/failures.js'
import type { Accion } from './caller.js'

/** What a caller lacks: a permission for a module, or an administrator's profile. */
export type Needs = ({ modulo: string; accion: Accion } | { administrador: true }) & {
  /** The id of the other profile, if the caller was refused because that profile holds more. */
  perfil?: number
}

/** Details of a refusal, for the log and `x-needs` alone. */
interface Refusal {
  needs?: Needs
  /** Why the password of an existing user was refused. */
  reason?: 'inactive' | 'password'
  /** The user whose password was refused. Without it, the log has the caller. */
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

const ADMINISTRADOR: Needs = { administrador: true }

/** Returns the Failure `forbidden`. By default, the caller needs an administrator's profile. */
export const forbidden = (needs: Needs = ADMINISTRADOR) =>
  new RefusedFailure({ needs }, 'forbidden')

/**
 * Adds a hook that passes the details of each RefusedFailure on to the log, and sends what the
 * caller lacks in the header `x-needs`.
 */
export function reportRefusals(app: FastifyInstance) {
  app.addHook('onError', (request, reply, error, done) => {
    if (!(error instanceof RefusedFailure)) return done()

    // A login has no session, but its refusal has `who`.
    const { id, nombre, idPerfil, perfil } = request.sesion ?? {}
    const { needs, who = { id, nombre, idPerfil, perfil } } = error.refusal
    if (needs) reply.header('x-needs', describeNeeds(needs))
    const route = request.routeOptions.url
    request.refusal = { ...error.refusal, who, route, target: targetOf(request) }
    done()
  })
}

/**
 * Returns the id in the path of a request, or else the `idPerfil` in its body. If there is neither,
 * returns NaN, which the log shows as null.
 */
function targetOf({ params, body }: FastifyRequest) {
  const [pathId] = Object.values(params as object)
  const { idPerfil } = Object(body)
  return Number(pathId ?? idPerfil)
}

/**
 * Returns the value of `x-needs`: `MODULO:bitFlag`, as in the OpenAPI document, or `administrador`.
 * The module's name is percent-encoded, because a header contains only ASCII.
 */
export function describeNeeds(needs: Needs = ADMINISTRADOR) {
  if ('administrador' in needs) return 'administrador'
  return `${encodeURIComponent(needs.modulo)}:${needs.accion}`
}
