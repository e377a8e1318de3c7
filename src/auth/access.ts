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

const OWN = {
  perfil: { param: 'idPerfil', of: (sesion: Sesion) => sesion.idPerfil },
  usuario: { param: 'id', of: (sesion: Sesion) => sesion.id },
}

/** What a route asks of its caller. */
export type Access =
  | 'public'
  /** Any session. */
  | 'session'
  | {
      modulo: ModuloDeSistema
      accion: Accion
      /** Whose own record, named by the path, needs no more than a session. */
      unlessOwn?: keyof typeof OWN
    }

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /** The path parameter with the profile whose map's version `caller` is to have. */
    versionOf?: 'idPerfil'
  }
  interface FastifyRequest {
    /** The verified token; there on every route that demands a session. */
    token: Token | null
    /** Who is calling. It is set for every handler of a route that needs a session, else null. */
    caller: Caller
  }
}

/**
 * Verifies the token of every request that needs a session and counts the request for the share of
 * its user (see http/turns.ts). Throws the Failure `unauthenticated` without a valid token.
 */
export function identifyCallers(app: FastifyInstance) {
  app.decorateRequest('token', null)
  app.addHook('onRequest', async (request) => {
    const { access } = request.routeOptions.config
    if (access === undefined || access === 'public') return
    const token = request.verifyToken()
    if (!token) throw new Failure('unauthenticated')
    request.token = token
    // The own permission map shares all of its statements, so it takes nothing from the others.
    if (versionOf(request) !== token.idPerfil) request.sharer = token.id
  })
}

/**
 * Guards every route of the instance by its `config.access`, after identifyCallers. A route without
 * one ends the start with an error that names it.
 */
export function guardRoutes(app: FastifyInstance, config: Config) {
  const isEnforced = config.AUTHORIZATION === 'enforced'
  const findSesion = shareSesiones((lookups) => findSesiones(app.sql, lookups))
  app.decorateRequest('caller', null as unknown as Caller)
  app.addHook('onRoute', documentAccess)

  app.addHook('onRequest', async (request) => {
    const { access } = request.routeOptions.config
    if (access === undefined || access === 'public') return
    const sesion = await sesionOf(request, access)
    if (!sesion) throw new Failure('unauthenticated')
    const { modulo = null, accion = null } = typeof access === 'object' ? access : {}
    request.caller = callerOf(sesion, { modulo, accion, enforced: isEnforced })

    if (isForgeable(request, config.CORS_ORIGIN)) throw forbidden({ origin: 'CORS_ORIGIN' })
    if (isEnforced && !isAllowed(request, access, sesion)) throw forbidden({ modulo, accion })
  })

  async function sesionOf(request: FastifyRequest, access: Access) {
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

/** The session and what the endpoint needs, as one object. */
function callerOf(sesion: Sesion, needs: Pick<Caller, 'modulo' | 'accion' | 'enforced'>): Caller {
  const { id, ver, nombre, idPerfil, perfil, administrador, versionPermisos } = sesion
  return { id, ver, nombre, idPerfil, perfil, administrador, versionPermisos, ...needs }
}

/** The profile that `config.versionOf` points to; null where that can't be one. */
function versionOf({ params, routeOptions }: FastifyRequest) {
  const param = routeOptions.config.versionOf
  const id = param ? Number((params as Record<string, string>)[param]) : 0
  return Number.isInteger(id) && id > 0 && id <= MAX_ID ? id : null
}

function isAllowed({ params }: FastifyRequest, access: Access, sesion: Sesion) {
  if (typeof access === 'string' || sesion.administrador || sesion.permitido) return true
  if (!access.unlessOwn) return false
  const { param, of } = OWN[access.unlessOwn]
  return Number((params as Record<string, string>)[param]) === of(sesion)
}

/**
 * Whether another site may have made the caller's browser send this: a write whose only
 * credential is the cookie, from a page of no listed origin.
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

function documentAccess(route: RouteOptions) {
  const access = route.config?.access
  if (access === undefined) throw new Error(`${route.method} ${route.url} declares no access`)
  if (access !== 'public') {
    route.config = { ...route.config, failures: { ...REFUSALS, ...route.config?.failures } }
  }
  // A HEAD route shares the schema of its GET.
  if (!route.schema || route.method === 'HEAD') return
  route.schema.security = securityOf(access)
  const text = describeAccess(access)
  route.schema.description = [route.schema.description, text].filter(Boolean).join(' ')
}

/**
 * Returns what a caller needs, for machines: alternatives, each a list of permissions. A permission is
 * a module and an action, which OpenAPI 3.1 has as the roles of a security scheme.
 */
function securityOf(access: Access) {
  const session = { bearer: [] }
  if (access === 'public') return []
  if (access === 'session') return [session]
  const permission = { bearer: [`${access.modulo}:${access.accion}`] }
  return access.unlessOwn ? [permission, session] : [permission]
}

/** Returns the same in words. */
function describeAccess(access: Access) {
  if (access === 'public') return 'No necesita sesión.'
  if (access === 'session') return 'Necesita una sesión.'
  const exception = access.unlessOwn ? `, salvo para el ${access.unlessOwn} propio` : ''
  return `Necesita ${access.modulo} ${access.accion}${exception}.`
}
