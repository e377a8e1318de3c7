import { setTimeout as sleep } from 'node:timers/promises'
import underPressure from '@fastify/under-pressure'
import type { FastifyInstance } from 'fastify'
import { Failure } from '../answers/failures.js'

/** Requests are refused while the event loop lags by more than this, in milliseconds. */
const MAX_LOOP_DELAY = 1000
/** How long the answer to a refused request is delayed, in milliseconds. */
const REFUSAL_DELAY = 1000

/**
 * Throws the Failure `busy` after REFUSAL_DELAY. Some clients repeat a refused request at once.
 * Without the delay they would keep the service busy with refusals.
 */
async function refuse(): Promise<never> {
  await sleep(REFUSAL_DELAY)
  throw new Failure('busy')
}

/**
 * Refuses requests with the Failure `busy` while the event loop lags by more than MAX_LOOP_DELAY.
 */
export async function limitLoad(app: FastifyInstance) {
  await app.register(underPressure, {
    maxEventLoopDelay: MAX_LOOP_DELAY,
    pressureHandler: refuse,
  })
}
