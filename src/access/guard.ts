import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Config } from '../config.js'
import type { Pool } from '../database/pool.js'
import { shareLookups } from '../database/shared.js'
import type { Sql } from '../database/sql.js'
import { Failure, USUAL } from '../http/answers/failures.js'
import { MAX_ID } from '../http/input/fields.js'
import type { Caller } from './caller.js'
import { findSesiones } from './queries.js'
import { forbidden } from './refusal.js'
import type { Accion, Lookup, ModuloDeSistema, Sesion, Token } from './schemas.js'
import { bearerToken } from './token.js'

/**
 * How many statements that look up sessions may be in flight. Requests that arrive at the same time share
 * one. No session can be cached, because a permission that is revoked must lose its effect at once. With
 * shared statements, 50 clients that load their permission maps at the same time are served 2.6 times as
 * fast as with a statement for each request (`npm run bench -- --only lookup`).
 */
const MAX_IN_FLIGHT = 2

/**
 * The kinds of records that can be the caller's own. `param` is the path parameter with the id of
 * the record. `ownId` returns the id of the caller's own record of this kind.
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
  /** A session of an administrator's profile. */
  | 'administrador'
  /** A session of a profile that has this permission. */
  | Permission

interface Permission {
  modulo: ModuloDeSistema
  accion: Accion
  /** If the path names the caller's own record of this kind, any session is enough. */
  unlessOwn?: keyof typeof OWN
}

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /**
     * The path parameter with the id of a profile. The statement that looks up the session then
     * also returns the version of that profile's permission map, as `caller.versionPermisos`.
     */
    mapOf?: 'idPerfil'
  }
  interface FastifyRequest {
    /** The payload of the verified token. Null if the route is public. */
    token: Token | null
    /**
     * The caller. Null before the session has been checked, and if the route is public. The type
     * leaves out null for the handlers, which run after the check.
     */
    caller: Caller
    /** The database, in the share of the caller's sessions. Null like `caller`. */
    sql: Sql
  }
}

/**
 * Adds a hook that verifies the token of every request that needs a session. The hook throws the
 * Failure `unauthenticated` if the request has no valid token.
 */
export function identifyCallers(app: FastifyInstance) {
  app.decorateRequest('token', null)
  app.addHook('onRequest', (request, _reply, done) => {
    const { access } = request.routeOptions.config
    if (access === undefined || access === 'public') return done()
    const token = request.verifyToken()
    if (!token) throw new Failure('unauthenticated')
    request.token = token
    done()
  })
}

/**
 * Adds a hook that lets a request pass only if the caller has what the route's `config.access`
 * requires. guardRoutes must be called after identifyCallers.
 *
 * The hook throws the Failure `unauthenticated` if the session has ended. It throws `forbidden` if
 * the caller lacks the permission, or if another site may have forged the request. A route without
 * `config.access` makes the start of the service fail.
 */
export function guardRoutes(app: FastifyInstance, sql: Pool, config: Config) {
  const isEnforced = config.AUTHORIZATION === 'enforced'
  const findSesion = shareLookups<Lookup, Sesion | undefined>(
    (lookups) => findSesiones(sql, lookups),
    MAX_IN_FLIGHT,
  )
  app.decorateRequest('caller', null as unknown as Caller)
  app.decorateRequest('sql', null as unknown as Sql)
  app.addHook('onRoute', documentAccess)

  app.addHook('onRequest', async (request) => {
    const { access } = request.routeOptions.config
    if (access === undefined || access === 'public') return
    const sesion = await findSesionOf(request, access)
    if (!sesion) throw new Failure('unauthenticated')
    request.caller = {
      ...sesion,
      ...permissionOf(access),
      enforced: isEnforced,
      ip: request.clientIp,
      idPeticion: request.id,
    }
    request.sql = sql.share(sesion.id)

    if (isForgeable(request, config.CORS_ORIGIN)) {
      throw forbidden({ origin: 'CORS_ORIGIN' })
    }
    if (isEnforced && !isAllowed(request, access, sesion)) {
      throw typeof access === 'string' ? forbidden() : forbidden(neededBy(access))
    }
  })

  /**
   * Finds the session for the request's token, and whether its profile has the permission that the
   * route needs. Returns undefined if the session has ended.
   */
  async function findSesionOf(request: FastifyRequest, access: Access) {
    const { token } = request
    if (!token) return undefined
    const permission = isEnforced ? permissionOf(access) : NO_PERMISSION
    return findSesion({
      id: token.id,
      ver: token.ver ?? 0,
      ...permission,
      mapOf: perfilOfMap(request),
    })
  }
}

const NO_PERMISSION = { modulo: null, accion: null }

/** Returns the permission that a route needs. Both of its keys are null if the route needs none. */
function permissionOf(access: Access) {
  return typeof access === 'string' ? NO_PERMISSION : neededBy(access)
}

const neededBy = ({ modulo, accion }: Permission) => ({ modulo, accion })

/**
 * Returns the id in the path parameter that `config.mapOf` names. Returns null if the route has
 * no `mapOf`, or if no record can have this id.
 */
function perfilOfMap(request: FastifyRequest) {
  const param = request.routeOptions.config.mapOf
  if (!param) return null
  const id = pathNumber(request, param)
  const isPossible = Number.isInteger(id) && id > 0 && id <= MAX_ID
  return isPossible ? id : null
}

/** Returns a path parameter as a number, which may be NaN. */
function pathNumber(request: FastifyRequest, name: string) {
  const params = request.params as Record<string, string>
  return Number(params[name])
}

/** Returns whether the session has what the route needs. */
function isAllowed(request: FastifyRequest, access: Access, sesion: Sesion) {
  if (access === 'session' || sesion.administrador) return true
  if (typeof access === 'string') return false
  if (sesion.permitido) return true
  if (!access.unlessOwn) return false
  const { param, ownId } = OWN[access.unlessOwn]
  return pathNumber(request, param) === ownId(sesion)
}

/**
 * Returns whether a page of another site may have made the caller's browser send this request.
 *
 * Another site can forge a write if the cookie is the only credential of the request. The browser
 * sends the header `Sec-Fetch-Site: cross-site` with a request that a page of another site has
 * caused. Pages of the origins in CORS_ORIGIN are trusted.
 */
function isForgeable(request: FastifyRequest, origins: string[]) {
  const { method, headers } = request
  const isRead = method === 'GET' || method === 'HEAD'
  const isCrossSite = headers['sec-fetch-site'] === 'cross-site'
  const isTrusted = origins.includes(headers.origin ?? '')
  return isCrossSite && !isRead && !isTrusted && !bearerToken(request)
}

/** Every route that is not public declares these failures, so that the OpenAPI document lists them. */
const REFUSALS = {
  unauthenticated: USUAL.unauthenticated,
  forbidden: USUAL.forbidden,
}

/**
 * Adds to a route the failures, the security requirements and the description that follow from its
 * `config.access`. Throws an error that names the route if the route declares no access.
 */
function documentAccess(route: RouteOptions) {
  const access = route.config?.access
  if (access === undefined) {
    throw new Error(`${route.method} ${route.url} declares no access`)
  }
  if (access !== 'public') {
    const failures = { ...REFUSALS, ...route.config?.failures }
    route.config = { ...route.config, failures }
  }
  // Fastify adds a HEAD route to each GET route. Both have the same schema object, which was
  // changed when the GET route was added.
  if (!route.schema || route.method === 'HEAD') return
  route.schema.security = securityOf(access)
  const sentences = [route.schema.description, describeAccess(access)]
  route.schema.description = sentences.filter(Boolean).join(' ')
}

/**
 * Returns the security requirements for OpenAPI. A caller must meet one of them. A permission is
 * written as a role `module:action` of the security scheme, which OpenAPI 3.1 allows.
 */
function securityOf(access: Access) {
  const session = { bearer: [] }
  if (access === 'public') return []
  if (access === 'session') return [session]
  if (access === 'administrador') return [{ bearer: ['administrador'] }]
  const permission = { bearer: [`${access.modulo}:${access.accion}`] }
  return access.unlessOwn ? [permission, session] : [permission]
}

/** Returns what a caller needs as a Spanish sentence for the OpenAPI document. */
function describeAccess(access: Access) {
  if (access === 'public') return 'No necesita sesión.'
  if (access === 'session') return 'Necesita una sesión.'
  if (access === 'administrador') return 'Necesita un perfil de administrador.'
  const { modulo, accion, unlessOwn } = access
  const exception = unlessOwn ? `, salvo para el ${unlessOwn} propio` : ''
  return `Necesita ${modulo} ${accion}${exception}.`
}
