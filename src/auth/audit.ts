import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from './caller.js'
import { AuditedFailure, type FailureDetails, type LoginReason } from './refusal.js'

/**
 * What a write has changed, for its audit line. sql/README.md has the form for each kind of record.
 * The functions in sql/transactions compute it in the transaction of the write.
 */
export type Changes = object

/** What a function in sql/transactions returns: the record as it is now, and what has changed. */
export interface Written<T> {
  data: T
  changes: Changes
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Returns the id of what the route writes, if neither the path nor the answer contains it. */
    target?(request: FastifyRequest): unknown
    /** The reason in the audit line of a login whose fields are invalid. */
    invalidReason?: LoginReason
  }
  interface FastifyRequest {
    /** The name that a login was tried with; null for all other requests. */
    loginName: string | null
    /** The id in the answer to a write; null if there is none. */
    answeredId: number | null
    /** What the write has changed; null before it is done. */
    changes: Changes | null
  }
}

/** The parts of an answer that concern the audit. */
interface WriteAnswer {
  /** The record that was written. */
  data?: { id?: number } | null
  /** The user who has logged in. */
  user?: { id: number }
  changes?: Changes
}

/**
 * Writes one line for each write of the instance, done or refused, and for each read that is
 * forbidden. A handler puts `changes` into its answer (see http/envelopes.ts); they are taken out
 * before the answer is serialized.
 */
export function auditWrites(app: FastifyInstance) {
  app.decorateRequest('loginName', null)
  app.decorateRequest('answeredId', null)
  app.decorateRequest('changes', null)

  app.addHook('preSerialization', async (request, _reply, payload) => {
    if (isRead(request)) return payload
    const { changes, ...answer } = payload as WriteAnswer
    request.answeredId = answer.data?.id ?? answer.user?.id ?? null
    request.changes ??= changes ?? null
    return answer
  })

  // `onSend` also runs when the client has gone; `onResponse` does not.
  app.addHook('onSend', async (request, { statusCode: status }) => {
    const { method, routeOptions, failure, clientIp: ip } = request
    const outcome = failure?.code ?? 'done'
    if (isRead(request) && outcome !== 'forbidden') return
    const { needs, reason, target = findTarget(request) } = detailsOf(request)
    const what = { method, route: routeOptions.url, target, outcome, needs, reason }
    const changes = request.changes ?? undefined
    request.log.audit({ who: describeCaller(request), ip, ...what, status, changes }, 'audit')
  })
}

const isRead = ({ method }: FastifyRequest) => method === 'GET' || method === 'HEAD'

function describeCaller({ caller, loginName }: FastifyRequest) {
  if (!(caller as Caller | null)) return loginName === null ? null : { nombre: loginName }
  const { id, nombre, idPerfil, perfil } = caller
  return { id, nombre, idPerfil, perfil }
}

function detailsOf({ failure, routeOptions }: FastifyRequest): FailureDetails {
  if (failure instanceof AuditedFailure) return failure.details
  const isInvalid = failure?.code === 'invalid'
  return { reason: isInvalid ? routeOptions.config.invalidReason : undefined }
}

/** Returns the id of what a request writes; null if it is unknown. */
function findTarget(request: FastifyRequest) {
  const { id } = request.params as { id?: unknown }
  const named = id ?? request.routeOptions.config.target?.(request)
  return request.answeredId ?? (Number(named) || null)
}
