import { setTimeout as sleep } from 'node:timers/promises'
import underPressure from '@fastify/under-pressure'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
} from 'fastify'
import { Failure } from './failures.js'

/** How many requests may be in flight. A request does not count while its body arrives. */
const MAX_IN_FLIGHT = 400
/** Requests are refused while the event loop lags by more than this, in milliseconds. */
const MAX_LOOP_DELAY = 1000
/** How long the answer to a refused request is delayed, in milliseconds. */
const REFUSAL_DELAY = 1000

/**
 * Throws the Failure `busy` after REFUSAL_DELAY. Some clients repeat a refused request at once. Without
 * the delay they would keep the service busy with refusals.
 */
export async function refuse(): Promise<never> {
  await sleep(REFUSAL_DELAY)
  throw new Failure('busy')
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Whether the request counts towards MAX_IN_FLIGHT. */
    isInFlight: boolean
  }
}

type Done = HookHandlerDoneFunction

/**
 * Refuses a request with the Failure `busy` if MAX_IN_FLIGHT others are in flight, or if the event
 * loop lags by more than MAX_LOOP_DELAY.
 */
export async function limitLoad(app: FastifyInstance) {
  let inFlight = 0
  app.decorateRequest('isInFlight', false)

  function enter(request: FastifyRequest, _reply: FastifyReply, done: Done) {
    if (inFlight >= MAX_IN_FLIGHT) {
      refuse().catch(done)
      return
    }
    inFlight += 1
    request.isInFlight = true
    done()
  }

  function leave(request: FastifyRequest, _reply: FastifyReply, _payload: unknown, done: Done) {
    if (request.isInFlight) inFlight -= 1
    request.isInFlight = false
    done()
  }

  await app.register(underPressure, {
    maxEventLoopDelay: MAX_LOOP_DELAY,
    pressureHandler: refuse,
  })
  app.addHook('onRequest', enter)
  // Between these two hooks the body is read, which takes as long as the client likes.
  app.addHook('preParsing', leave)
  app.addHook('preValidation', enter)
  app.addHook('onSend', leave)
}
