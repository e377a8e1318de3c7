import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Config } from '../config.js'
import { Failure, forbidden } from '../failure.js'
import { bearerToken } from './plugin.js'
import { findSesion } from './queries.js'
import type { Accion, ModuloDeSistema, Sesion } from './schemas.js'

/** What a route asks of its caller. */
export type Access =
  | 'public'
  /** Any session. */
  | 'session'
  | {
      modulo: ModuloDeSistema
      accion: Accion
      /** A path parameter that lets a session in by itself, where it names the caller's own. */
      unlessOwn?: 'idPerfil'
    }

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
  }
  interface FastifyRequest {
    /** Who is calling; there on every route that demands a session. */
    sesion: Sesion | null
    /**
     * The user whose limits hold for what the request writes (see sql/transactions/begin_write.sql);
     * null where the client decides.
     */
    actor: number | null
  }
}

/**
 * Guards every route of the instance by its `config.access` (decisions, section 4). A route
 * without one ends the start with an error that names it.
 */
export function guardRoutes(app: FastifyInstance, config: Pick<Config, GuardKeys>) {
  const isEnforced = config.authorization === 'enforced'
  app.decorateRequest('sesion', null)
  app.decorateRequest('actor', null)
  app.addHook('onRoute', documentAccess)
  app.addHook('onRequest', async (request) => {
    const { access } = request.routeOptions.config
    if (access === undefined || access === 'public') return
    const sesion = await requireSesion(request, isEnforced ? access : 'session')
    if (isForgeable(request, config.corsOrigin)) throw forbidden()
    if (isEnforced) {
      if (!isAllowed(request, access, sesion)) throw forbidden()
      request.actor = sesion.id
    }
  })
}
type GuardKeys = 'authorization' | 'corsOrigin'

/**
 * The active user that the token speaks for, from one round trip together with the permission that
 * `access` names. Throws the Failure `unauthenticated` when there is none (contract, section 5).
 */
async function requireSesion(request: FastifyRequest, access: Access): Promise<Sesion> {
  const token = await request.verifyToken()
  const needed = typeof access === 'object' ? access : undefined
  const sesion = token && (await findSesion(request.server.sql, token, needed))
  if (!sesion) throw new Failure('unauthenticated', 'Sesión no válida o expirada')
  request.sesion = sesion
  return sesion
}

function isAllowed({ params }: FastifyRequest, access: Access, sesion: Sesion) {
  if (typeof access === 'string' || sesion.administrador || sesion.permitido) return true
  const { [access.unlessOwn ?? '']: own } = params as Record<string, string>
  return own !== undefined && Number(own) === sesion.idPerfil
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

function documentAccess(route: RouteOptions) {
  const access = route.config?.access
  if (access === undefined) throw new Error(`${route.method} ${route.url} declares no access`)
  // A HEAD route shares the schema of its GET.
  if (!route.schema || route.method === 'HEAD') return
  if (access === 'public') route.schema.security = []
  const text = describeAccess(access)
  route.schema.description = [route.schema.description, text].filter(Boolean).join(' ')
}

/** The same in words, for the documentation. */
function describeAccess(access: Access) {
  if (access === 'public') return 'No necesita sesión.'
  if (access === 'session') return 'Necesita una sesión.'
  const exception = access.unlessOwn ? ', salvo para el perfil propio' : ''
  return `Necesita ${access.modulo} ${access.accion}${exception}.`
}
