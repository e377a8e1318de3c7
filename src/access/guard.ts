import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Config } from '../config.js'
import type { Pool } from '../database/pool.js'
import { shareLookups } from '../database/shared.js'
import type { Sql } from '../database/sql.js'
import { Failure, USUAL } from '../http/answers/failures.js'
import { MAX_ID } from '../http/input/fields.js'
import type { Caller } from './caller.js'
import { findSesiones } from './queries.js'
import { forbidden, type Needs } from './refusal.js'
import type { Accion, Lookup, ModuloDeSistema, Sesion } from './schemas.js'
import { bearerToken, type VerifyToken } from './token.js'

/**
 * How many statements that look up sessions may be in flight. Requests that arrive at the same time share
 * one. No session can be cached, because a permission that is revoked must lose its effect at once. With
 * shared statements, 50 clients that load their permission maps at the same time are served 2.6 times as
 * fast as with a statement for each request (`npm run bench -- --only lookup`).
 */
const MAX_IN_FLIGHT = 2

/**
 * The kinds of records that can be the caller's own, and where their ids are: the path parameter and the
 * property of the session have the same name.
 */
const OWN = { perfil: 'idPerfil', usuario: 'id' } as const

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
 * Adds a hook that lets a request pass only if the caller has what the route's `config.access`
 * requires.
 *
 * The hook throws the Failure `unauthenticated` if the request has no valid token or its session has
 * ended. It throws `forbidden` if the caller lacks the permission, or if another site may have forged
 * the request. A route without `config.access` makes the start of the service fail.
 */
export function guardRoutes(
  app: FastifyInstance,
  verifyToken: VerifyToken,
  sql: Pool,
  config: Config,
) {
  const isEnforced = config.AUTHORIZATION === 'enforced'
  const findSesion = shareLookups<Lookup, Sesion | undefined>(
    (lookups) => findSesiones(sql, lookups),
    MAX_IN_FLIGHT,
  )
  app.decorateRequest('caller', null as unknown as Caller)
  app.decorateRequest('sql', null as unknown as Sql)
  app.addHook('onRoute', documentAccess)

  app.addHook('onRequest', async (request) => {
    const { access = 'public' } = request.routeOptions.config
    if (access === 'public') return
    const token = verifyToken(request)
    if (!token) throw new Failure('unauthenticated')

    const { id, ver = 0 } = token
    const permission = permissionOf(access)
    const sesion = await findSesion({ id, ver, ...permission, mapOf: perfilOfMap(request) })
    if (!sesion) throw new Failure('unauthenticated')
    request.caller = {
      ...sesion,
      ...permission,
      enforced: isEnforced,
      ip: request.clientIp,
      idPeticion: request.id,
    }
    request.sql = sql.share(id)

    if (isForgeable(request, config.CORS_ORIGIN)) throw forbidden({ origin: 'CORS_ORIGIN' })
    if (isEnforced && !isAllowed(request, access, sesion)) throw forbidden(neededBy(access))
  })
}

/** Returns the permission that a route needs. Both of its keys are null if the route needs none. */
function permissionOf(access: Access) {
  if (typeof access === 'string') return { modulo: null, accion: null }
  const { modulo, accion } = access
  return { modulo, accion }
}

/** Returns what a caller lacks who may not use a route. */
function neededBy(access: Access): Needs {
  if (typeof access === 'string') return { administrador: true }
  const { modulo, accion } = access
  return { modulo, accion }
}

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
  const name = OWN[access.unlessOwn]
  return pathNumber(request, name) === sesion[name]
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
  const { security, sentence } = documentationOf(access)
  const { description } = route.schema
  route.schema.security = security
  route.schema.description = description ? `${description} ${sentence}` : sentence
}

/** The documentation of the routes that need no permission. */
const WITHOUT_PERMISSION = {
  public: { security: [], sentence: 'No necesita sesión.' },
  session: { security: [{ bearer: [] }], sentence: 'Necesita una sesión.' },
  administrador: {
    security: [{ bearer: ['administrador'] }],
    sentence: 'Necesita un perfil de administrador.',
  },
}

/**
 * Returns the security requirements for OpenAPI, and a Spanish sentence about them. A caller must meet
 * one of the requirements. A permission is written as a role `module:action` of the security scheme,
 * which OpenAPI 3.1 allows.
 */
function documentationOf(access: Access) {
  if (typeof access === 'string') return WITHOUT_PERMISSION[access]
  const { modulo, accion, unlessOwn } = access
  const permission = { bearer: [`${modulo}:${accion}`] }
  const sentence = `Necesita ${modulo} ${accion}`
  if (!unlessOwn) return { security: [permission], sentence: `${sentence}.` }
  return {
    security: [permission, { bearer: [] }],
    sentence: `${sentence}, salvo para el ${unlessOwn} propio.`,
  }
}
