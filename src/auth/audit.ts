import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from './caller.js'
import { AuditedFailure, type FailureDetails, type LoginReason } from './refusal.js'

/**
 * The changes that a write has made, for its audit line. sql/README.md describes their form for
 * each kind of record. The functions in sql/transactions compute them in the transaction of the
 * write.
 */
export type Changes = object

/** The result of a function in sql/transactions: the record after the write, and its changes. */
export interface Written<T> {
  data: T
  changes: Changes
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Returns the id of the record that the route writes. A route needs it only if neither its path
     * nor its answer has the id.
     */
    target?(request: FastifyRequest): unknown
    /** The reason in the audit line of a login whose fields are invalid. */
    invalidReason?: LoginReason
  }
  interface FastifyRequest {
    /** The user name in the body of a login. Null for all other requests. */
    loginName: string | null
    /** The id of the record in the answer to a write. Null if the answer has none. */
    answeredId: number | null
    /**
     * The changes that the write has made. Null before the write, and if the write reports none.
     */
    changes: Changes | null
  }
}

/** The parts of a handler's answer that the audit line needs. */
interface WriteAnswer {
  /** The record that was written. */
  data?: { id?: number } | null
  /** The user who has logged in. Only the answer to a login has it. */
  user?: { id: number }
  changes?: Changes
}

/**
 * Adds hooks to `app` that log an audit line for each write request, whether it succeeds or fails,
 * and for each read that is refused with the Failure `forbidden`. A handler puts `changes` into its
 * answer (see http/envelopes.ts). They are removed before the answer is serialized.
 */
export function auditWrites(app: FastifyInstance) {
  app.decorateRequest('loginName', null)
  app.decorateRequest('answeredId', null)
  app.decorateRequest('changes', null)

  app.addHook('preSerialization', (request, _reply, payload, done) => {
    if (isRead(request)) return done(null, payload)
    const { changes, ...answer } = payload as WriteAnswer
    const id = answer.data?.id ?? answer.user?.id
    // If the answer cannot be serialized, this hook runs again for the body of the failure. The
    // write has been carried out all the same, so its id and its changes are kept.
    if (id !== undefined) request.answeredId = id
    if (changes) request.changes = changes
    done(null, answer)
  })

  // Fastify runs `onSend` even if the client has closed the connection, but not `onResponse`.
  app.addHook('onSend', (request, reply, _payload, done) => {
    const outcome = request.failure?.code ?? 'done'
    if (isRead(request) && outcome !== 'forbidden') return done()

    const details = detailsOf(request)
    const line = {
      who: describeCaller(request),
      ip: request.clientIp,
      method: request.method,
      route: request.routeOptions.url,
      target: details.target ?? findTarget(request),
      outcome,
      needs: details.needs,
      reason: details.reason,
      status: reply.statusCode,
      changes: request.changes ?? undefined,
    }
    request.log.audit(line, 'audit')
    done()
  })
}

function isRead({ method }: FastifyRequest) {
  return method === 'GET' || method === 'HEAD'
}

/**
 * Returns the caller, or the user name in the body of a login. Returns null if neither is known.
 */
function describeCaller(request: FastifyRequest) {
  const caller: Caller | null = request.caller
  if (caller) {
    const { id, nombre, idPerfil, perfil } = caller
    return { id, nombre, idPerfil, perfil }
  }
  const nombre = request.loginName
  return nombre === null ? null : { nombre }
}

/** Returns the details of the request's failure. They are empty if it has none. */
function detailsOf({ failure, routeOptions }: FastifyRequest): FailureDetails {
  if (failure instanceof AuditedFailure) return failure.details
  if (failure?.code !== 'invalid') return {}
  return { reason: routeOptions.config.invalidReason }
}

/** Returns the id of the record that a request writes. Returns null if it is unknown. */
function findTarget(request: FastifyRequest) {
  if (request.answeredId !== null) return request.answeredId
  const { config } = request.routeOptions
  // The first parameter in the path of a write is the id of the record.
  const [pathId] = Object.values(request.params as object)
  const sentId: unknown = pathId ?? config.target?.(request)
  // If the request was refused before its body was validated, the id may be any JSON value.
  const isId = typeof sentId === 'string' || typeof sentId === 'number'
  return isId ? Number(sentId) || null : null
}
