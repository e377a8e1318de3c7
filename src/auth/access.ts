import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Config } from '../config.js'
import { Failure, statusFailure } from '../http/failures.js'
import { MAX_ID } from '../http/fields.js'
import type { Caller } from './caller.js'
import { bearerToken } from './plugin.js'
import { findSesiones } from './queries.js'
import { forbidden } from './refusal.js'
import type { Accion, ModuloDeSistema, Sesion, Token } from './schemas.js'
import { shareSesiones } from './sesiones.js'

/**
 * The kinds of records that can be the caller's own: the path parameter with the id of the record,
 * and the function that returns the caller's own id.
 */
const OWN = {
  perfil: { param: 'idPerfil', ownId: (sesion: Sesion) => sesion.idPerfil },
  usuario: { param: 'id', ownId: (sesion: Sesion) => sesion.id },
}

/** Describes what a caller needs to use a route. */
export type Access =
  /** The route needs no session. */
  | 'public'
  /** Any session. */
  | 'session'
  /** A session of a profile that has this permission. */
  | {
      modulo: ModuloDeSistema
      accion: Accion
      /** If the path names the caller's own record of this kind, any session will do. */
      unlessOwn?: keyof typeof OWN
    }

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /**
     * The path parameter with the id of a profile. The version of its permission map is looked up
     * with the session, as `caller.versionPermisos`.
     */
    versionOf?: 'idPerfil'
  }
  interface FastifyRequest {
    /** The payload of the verified token. Null if the route is public. */
    token: Token | null
    /**
     * The caller of a route that needs a session, from the check of the session on. Null for public
     * routes.
     */
    caller: Caller
  }
}

/**
 * Verifies the token of every request that needs a session. Sets `request.sharer`, so that the
 * request counts towards its user's share of the service (see http/turns.ts). Throws the Failure
 * `unauthenticated` for a request without a valid token.
 */
export function identifyCallers(app: FastifyInstance) {
  app.decorateRequest('token', null)
  app.addHook('onRequest', (request, _reply, done) => {
    const { access } = request.routeOptions.config
    if (access === undefined || access === 'public') return done()
    const token = request.verifyToken()
    if (!token) throw new Failure('unauthenticated')
    request.token = token
    // Requests for one's own permission map share their statements with those of other users, and
    // therefore do not count towards anybody's share.
    if (versionOf(request) !== token.idPerfil) request.sharer = token.id
    done()
  })
}

/**
 * Lets a request pass only if its caller has what the route's `config.access` requires. It must be
 * called after identifyCallers. The hook throws the Failure `unauthenticated` if the session has
 * ended, and `forbidden` if the caller lacks the permission or another site may have forged the
 * request. A route without `config.access` makes the start of the service fail.
 */
export function guardRoutes(app: FastifyInstance, config: Config) {
  const isEnforced = config.AUTHORIZATION === 'enforced'
  const findSesion = shareSesiones((lookups) => findSesiones(app.sql, lookups))
  app.decorateRequest('caller', null as unknown as Caller)
  app.addHook('onRoute', documentAccess)

  app.addHook('onRequest', async (request) => {
    const { access } = request.routeOptions.config
    if (access === undefined || access === 'public') return
    const sesion = await findSesionOf(request, access)
    if (!sesion) throw new Failure('unauthenticated')
    const { modulo = null, accion = null } = typeof access === 'object' ? access : {}
    request.caller = callerOf(sesion, { modulo, accion, enforced: isEnforced })

    if (isForgeable(request, config.CORS_ORIGIN)) throw forbidden({ origin: 'CORS_ORIGIN' })
    if (isEnforced && !isAllowed(request, access, sesion)) throw forbidden({ modulo, accion })
  })

  /** Finds the session for the request's token, with the permission that the route needs. */
  async function findSesionOf(request: FastifyRequest, access: Access) {
    const { token } = request
    if (!token) return undefined
    const needed = isEnforced && typeof access === 'object' ? access : undefined
    return findSesion({
      id: token.id,
      ver: token.ver ?? 0,
      modulo: needed?.modulo ?? null,
      accion: needed?.accion ?? null,
      versionOf: versionOf(request),
    })
  }
}

/** Returns the session and what the endpoint needs as one object. */
function callerOf(sesion: Sesion, needs: Pick<Caller, 'modulo' | 'accion' | 'enforced'>): Caller {
  const { id, ver, nombre, idPerfil, perfil, administrador, versionPermisos } = sesion
  return { id, ver, nombre, idPerfil, perfil, administrador, versionPermisos, ...needs }
}

/**
 * Returns the id of the profile that `config.versionOf` points to; null if it is not a possible id.
 */
function versionOf({ params, routeOptions }: FastifyRequest) {
  const param = routeOptions.config.versionOf
  const id = param ? Number((params as Record<string, string>)[param]) : 0
  return Number.isInteger(id) && id > 0 && id <= MAX_ID ? id : null
}

function isAllowed({ params }: FastifyRequest, access: Access, sesion: Sesion) {
  if (typeof access === 'string' || sesion.administrador || sesion.permitido) return true
  if (!access.unlessOwn) return false
  const { param, ownId } = OWN[access.unlessOwn]
  return Number((params as Record<string, string>)[param]) === ownId(sesion)
}

/**
 * Returns whether another site may have made the caller's browser send this request: a write whose
 * only credential is the cookie. The header Sec-Fetch-Site shows that the page is of another site.
 * Pages of the origins in CORS_ORIGIN are trusted.
 */
function isForgeable(request: FastifyRequest, origins: string[]) {
  const { method, headers } = request
  return (
    headers['sec-fetch-site'] === 'cross-site' &&
    method !== 'GET' &&
    method !== 'HEAD' &&
    !bearerToken(request) &&
    !origins.includes(headers.origin ?? '')
  )
}

const REFUSALS = {
  unauthenticated: statusFailure(401, 'Sesión no válida o expirada'),
  forbidden: statusFailure(403, 'No tiene permiso para realizar esta acción'),
}

/**
 * Adds to a route the failures, the security requirements and the description that follow from its
 * `config.access`. Throws an error that names the route if it declares none.
 */
function documentAccess(route: RouteOptions) {
  const access = route.config?.access
  if (access === undefined) throw new Error(`${route.method} ${route.url} declares no access`)
  if (access !== 'public') {
    route.config = { ...route.config, failures: { ...REFUSALS, ...route.config?.failures } }
  }
  // A HEAD route has the same schema object as its GET route, which has been changed already.
  if (!route.schema || route.method === 'HEAD') return
  route.schema.security = securityOf(access)
  const text = describeAccess(access)
  route.schema.description = [route.schema.description, text].filter(Boolean).join(' ')
}

/**
 * Returns what a caller needs as the security requirements of OpenAPI, of which one must be met. A
 * permission is written as a role `module:action` of the security scheme, which OpenAPI 3.1 allows.
 */
function securityOf(access: Access) {
  const session = { bearer: [] }
  if (access === 'public') return []
  if (access === 'session') return [session]
  const permission = { bearer: [`${access.modulo}:${access.accion}`] }
  return access.unlessOwn ? [permission, session] : [permission]
}

/** Returns what a caller needs as a Spanish sentence for the OpenAPI document. */
function describeAccess(access: Access) {
  if (access === 'public') return 'No necesita sesión.'
  if (access === 'session') return 'Necesita una sesión.'
  const exception = access.unlessOwn ? `, salvo para el ${access.unlessOwn} propio` : ''
  return `Necesita ${access.modulo} ${access.accion}${exception}.`
}
