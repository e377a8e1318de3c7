import type { FastifyInstance, RouteOptions } from 'fastify'
import type { Config } from '../config.js'
import { batchLookups } from '../database/batch.js'
import type { Pool } from '../database/pool.js'
import type { Sql } from '../database/sql.js'
import { Failure, USUAL_ANSWERS } from '../http/answers/failures.js'
import type { Caller, Lookup, Permission, Sesion, TokenPayload } from './caller.js'
import { findSesiones } from './queries.js'
import { describeNeeds, forbidden } from './refusal.js'
import type { VerifyToken } from './token.js'

/** Describes what a caller needs to use a route. */
type Access =
  /** The route needs no session. */
  | 'public'
  /**
   * Any session. Neither a permission nor the four rules of README.md are checked, so the route
   * must write nothing but the caller's own user.
   */
  | 'session'
  /** A session of a profile that has this permission. */
  | Permission

declare module 'fastify' {
  interface FastifyContextConfig {
    /** If it is missing, the route needs an administrator's profile. */
    access?: Access
    /**
     * The path parameter with the id of the user or the profile. If it is the caller's own, any
     * session is enough.
     */
    unlessOwn?: 'id' | 'idPerfil'
  }
  interface FastifyRequest {
    // The guard sets these fields. On a public route they are undefined.
    /** The caller's session. */
    sesion: Sesion
    /** The caller, as a write passes it to the database. */
    caller: Caller
    /** The database, in the caller's share of the connections. */
    sql: Sql
  }
}

/**
 * Adds a hook that lets a request pass only if the caller has what the route's `config.access`
 * requires.
 *
 * The hook throws the Failure `unauthenticated` if the request has no valid token or its session
 * has ended. It throws `forbidden` if the caller lacks the permission.
 */
export function guardRoutes(
  app: FastifyInstance,
  verifyToken: VerifyToken,
  pool: Pool,
  { AUTHORIZATION }: Config,
) {
  // Requests that arrive at the same time share one statement, which serves 50 clients 2.4 times as
  // fast (`npm run bench -- --only lookup`). No session can be cached, because a permission that is
  // revoked must lose its effect at once.
  const findSesion = batchLookups((lookups: Lookup[]) => findSesiones(pool, lookups))
  app.addHook('onRoute', documentAccess)

  app.addHook('onRequest', async (request) => {
    const { access, unlessOwn } = request.routeOptions.config
    if (access === 'public') return
    const payload = verifyToken(request)
    const { id, ver = 0 } = payload
    const enforced = AUTHORIZATION === 'enforced' && access !== 'session'
    const permission = access === 'session' ? undefined : access
    const params = request.params as Record<string, string>
    const isOwn = (user: TokenPayload) => unlessOwn && Number(params[unlessOwn]) === user[unlessOwn]

    // The caller's own record or map needs only a session. If the path has the id of the token, the
    // first look-up leaves out the permission, and so takes less time. A look-up with the
    // permission follows if the first one finds no session, or if the user has another profile by
    // now.
    let sesion = isOwn(payload) ? await findSesion({ id, ver }) : undefined
    if (!sesion?.id || !isOwn(sesion)) sesion = await findSesion({ id, ver, ...permission })
    if (!sesion?.id) throw new Failure('unauthenticated')
    request.sesion = sesion
    request.caller = {
      id,
      ver,
      ...permission,
      enforced,
      ip: request.ip,
      idPeticion: request.id,
    }
    request.userId = id
    request.sql = pool.forUser(id)

    if (!enforced || sesion.permitido || isOwn(sesion)) return
    throw forbidden(permission)
  })
}

/**
 * Adds to a route, for the OpenAPI document, what follows from its `config.access`: the failures,
 * the security requirements and a sentence in the description. A caller must meet one of the
 * requirements. A requirement with a role demands that permission, written as in `x-needs`. A
 * requirement without a role demands only a session.
 */
function documentAccess(route: RouteOptions) {
  const { config = {}, schema } = route
  const { access, unlessOwn } = config
  if (access === 'public') {
    route.schema = { ...schema, security: [] }
    return
  }
  const { unauthenticated, forbidden } = USUAL_ANSWERS
  const possible = access === 'session' ? { unauthenticated } : { unauthenticated, forbidden }
  route.config = { ...config, failures: { ...possible, ...config.failures } }
  if (access === 'session') return

  const role = describeNeeds(access)
  const needed = { bearer: [role] }
  const security = unlessOwn ? [needed, { bearer: [] }] : [needed]
  const sentence = `Necesita el rol ${role}${unlessOwn ? ', salvo para el propio' : ''}.`
  const description = `${schema?.description ?? ''} ${sentence}`.trim()
  route.schema = { ...schema, security, description }
}
