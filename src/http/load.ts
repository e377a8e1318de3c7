import { setTimeout as sleep } from 'node:timers/promises'
import underPressure from '@fastify/under-pressure'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Failure } from './failures.js'

/** How many requests may be in flight. A request whose body is still arriving does not count. */
const MAX_IN_FLIGHT = 400
/** How late the event loop may be before requests are refused, in milliseconds. */
const MAX_LOOP_DELAY = 1000
/** How long the answer to a refused request is held back, in milliseconds. */
const REFUSAL_DELAY = 1000

/**
 * Throws the Failure `busy`, after REFUSAL_DELAY: a client that repeats its request without a pause
 * would otherwise keep the service busy with refusals.
 */
export async function refuse(): Promise<never> {
  await sleep(REFUSAL_DELAY)
  throw new Failure('busy')
}

/**
 * Refuses requests with the Failure `busy` while MAX_IN_FLIGHT others are in flight, or while the
 * event loop is later than MAX_LOOP_DELAY.
 */
export async function limitLoad(app: FastifyInstance) {
  const inFlight = new Set<FastifyRequest>()

  async function enter(request: FastifyRequest) {
    if (inFlight.size >= MAX_IN_FLIGHT) await refuse()
    inFlight.add(request)
  }

  async function leave(request: FastifyRequest) {
    inFlight.delete(request)
  }

  await app.register(underPressure, {
    maxEventLoopDelay: MAX_LOOP_DELAY,
    pressureHandler: refuse,
  })
  app.addHook('onRequest', enter)
  // The body is read between these two hooks, at the pace of the client.
  app.addHook('preParsing', leave)
  app.addHook('preValidation', enter)
  app.addHook('onSend', leave)
}
