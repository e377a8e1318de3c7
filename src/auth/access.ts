import { setImmediate } from 'node:timers/promises'
import DataLoader from 'dataloader'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import pLimit from 'p-limit'
import type { Config } from '../config.js'

import type { Sql } from '../database/sql.js'
import { Failure, statusFailure } from '../http/failures.js'
import { MAX_ID } from '../http/fields.js'
import { type Actor, forbidden } from './actor.js'
import { bearerToken } from './plugin.js'
import { findSesion, findSesionesForOwnMapa } from './queries.js'
import type { Accion, ModuloDeSistema, Sesion } from './schemas.js'

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
    /** The path parameter with the profile whose map's version `sesion` is to have. */
    versionOf?: 'idPerfil'
  }
  interface FastifyRequest {
    /** Who is calling; there on every route that demands a session. */
    sesion: Sesion | null
    /** The caller as sql/functions/begin_write.sql checks it; there on the same routes. */
    actor: Actor
  }
}

/**
 * Guards every route of the instance by its `config.access`. A route without one ends the start with
 * an error that names it.
 */
export function guardRoutes(app: FastifyInstance, config: Config) {
  const isEnforced = config.AUTHORIZATION === 'enforced'
  app.decorateRequest('sesion', null)
  app.decorateRequest('actor', null as unknown as Actor)
  app.addHook('onRoute', documentAccess)
  const sesionesForOwnMapa = batchSesiones(app.sql)

  /**
   * The active user that the token speaks for, from one round trip together with the permission
   * that `access` names; undefined when there is none.
   */
  async function readSesion(request: FastifyRequest, access: Access) {
    const token = request.verifyToken()
    if (!token) return undefined
    const versionOf = versionOfParam(request)
    if (versionOf !== undefined && versionOf === token.idPerfil) {
      const sesion = await sesionesForOwnMapa.load(token.id)
      if (!sesion || sesion.ver !== (token.ver ?? 0)) return undefined
      // Unless the user has been moved since the token was issued.
      if (sesion.idPerfil === versionOf) return sesion
    }
    return findSesion(app.sql, token, typeof access === 'object' ? access : undefined, versionOf)
  }

  app.addHook('onRequest', async (request) => {
    const { access } = request.routeOptions.config
    if (access === undefined || access === 'public') return
    const sesion = await readSesion(request, isEnforced ? access : 'session')
    if (!sesion) throw new Failure('unauthenticated')
    request.sesion = sesion
    const { id, nombre, idPerfil, perfil } = sesion
    request.who = { id, nombre, idPerfil, perfil }
    if (isForgeable(request, config.CORS_ORIGIN)) throw forbidden({ origin: 'CORS_ORIGIN' })
    const { modulo = null, accion = null } = typeof access === 'object' ? access : {}
    if (isEnforced && !isAllowed(request, access, sesion)) throw forbidden({ modulo, accion })
    request.actor = { id: sesion.id, ver: sesion.ver, modulo, accion, enforced: isEnforced }
  })
}

/** Statements in flight at once; the calls that come meanwhile are the next one's. */
const MAX_BATCHES = 2

/**
 * Every client loads its map after every login, and this is all that it costs the database: calls
 * that come in together are asked in one statement, which begins after each of them did. 50 clients
 * at once are served 4 times as fast, measured by `npm run bench -- --only map`.
 */
function batchSesiones(sql: Sql) {
  const limit = pLimit(MAX_BATCHES)
  let batch: Promise<unknown> = Promise.resolve()
  async function find(ids: readonly number[]) {
    const sesiones = await findSesionesForOwnMapa(sql, [...new Set(ids)])
    return ids.map((id) => sesiones.get(id))
  }
  return new DataLoader(
    (ids: readonly number[]) => {
      const found = find(ids)
      batch = found.catch(() => {})
      return found
    },
    {
      cache: false,
      batchScheduleFn: (dispatch) =>
        limit(async () => {
          await setImmediate()
          dispatch()
          await batch
        }),
    },
  )
}

/** The profile that `config.versionOf` points to; undefined where that can't be one. */
function versionOfParam({ params, routeOptions }: FastifyRequest) {
  const { versionOf } = routeOptions.config
  const id = versionOf && Number((params as Record<string, string>)[versionOf])
  return id && Number.isInteger(id) && id > 0 && id <= MAX_ID ? id : undefined
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
  if (access === 'public') route.schema.security = []
  const text = describeAccess(access)
  route.schema.description = [route.schema.description, text].filter(Boolean).join(' ')
}

/** The same in words, for the documentation. */
function describeAccess(access: Access) {
  if (access === 'public') return 'No necesita sesión.'
  if (access === 'session') return 'Necesita una sesión.'
  const exception = access.unlessOwn ? `, salvo para el ${access.unlessOwn} propio` : ''
  return `Necesita ${access.modulo} ${access.accion}${exception}.`
}
