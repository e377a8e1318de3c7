import underPressure from '@fastify/under-pressure'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { busy } from './failure.js'
import { collectWhenQuiet } from './garbage.js'
import { isApi } from './headers.js'

/**
 * Requests that the service works on at a time, and this many times more when their bodies are
 * there, which would else come too late always. Those that wait for the database have half a second
 * or so before them then; 200 clients that each wait for their answers stay well below.
 */
const MAX_UNDER_WAY = 400
const BODY_FACTOR = 2
/** The same while the event loop is late by MAX_LOOP_DELAY milliseconds on average. */
const MAX_UNDER_PRESSURE = 100
const MAX_LOOP_DELAY = 1000
/**
 * How long a refusal is held back, in milliseconds, and how many are at a time: clients that come
 * again at once would keep the service so busy with refusing them that it does nothing else.
 */
const REFUSAL_DELAY = 1000
const MAX_HELD_BACK = 2000
/** As many refusals as are worth a collection of their garbage. */
const MANY_REFUSALS = 100
/** One for all: making an error costs more than anything else about a refusal. */
const BUSY = busy()

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route waits for other services, and so must not take others' places. */
    waitsOutside?: boolean
  }
  interface FastifyRequest {
    isUnderWay: boolean
    /** Has the request no longer counted; there on every route that is. */
    leavePlace?(): void
  }
}

/**
 * Refuses requests to the API of the instance with the Failure `busy` while it has more than it can
 * do: health and metrics stay answerable. To be called before any other hook that costs something.
 *
 * The delay of the event loop is known only once a second, and says nothing of a queue in front of
 * the database. So requests under way are counted: a bound on them is one on the time that an
 * accepted one takes. Refusing everything while the loop is late would leave it late for ever, with
 * refusals alone. A body that is still coming in is not counted, nor an answer that is still being
 * read: slow clients would take all the places.
 */
export async function shedOverload(app: FastifyInstance) {
  const underWay = { here: 0, outside: 0 }
  const garbage = collectWhenQuiet(MANY_REFUSALS)
  let heldBack = 0

  await app.register(underPressure, {
    maxEventLoopDelay: MAX_LOOP_DELAY,
    // It measures; what follows from it is decided below.
    pressureHandler: () => {},
  })

  const place = ({ routeOptions }: FastifyRequest) =>
    routeOptions.config.waitsOutside ? 'outside' : 'here'

  /** Whether there is no place for the request, of `factor` times as many as usual. */
  function isFull(request: FastifyRequest, factor = 1) {
    if (!isApi(request)) return false
    const places = app.isUnderPressure() ? MAX_UNDER_PRESSURE : MAX_UNDER_WAY
    return underWay[place(request)] >= places * factor
  }

  function refuse(done: (error: Error) => void) {
    if (heldBack >= MAX_HELD_BACK) return done(BUSY)
    heldBack += 1
    garbage.make(1)
    setTimeout(() => {
      heldBack -= 1
      if (heldBack === 0) garbage.rest()
      done(BUSY)
    }, REFUSAL_DELAY)
  }

  function enter(request: FastifyRequest) {
    if (!isApi(request)) return
    request.isUnderWay = true
    underWay[place(request)] += 1
  }

  function leave(request: FastifyRequest) {
    if (!request.isUnderWay) return
    request.isUnderWay = false
    underWay[place(request)] -= 1
  }

  app.decorateRequest('isUnderWay', false)
  app.decorateRequest('leavePlace', function (this: FastifyRequest) {
    leave(this)
  })
  app.addHook('onRequest', (request, _reply, done) => {
    if (isFull(request)) return refuse(done)
    enter(request)
    done()
  })
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    leave(request)
    done()
  })
  app.addHook('preValidation', (request, _reply, done) => {
    if (isFull(request, BODY_FACTOR)) return refuse(done)
    enter(request)
    done()
  })
  app.addHook('onSend', (request, _reply, _payload, done) => {
    leave(request)
    done()
  })
}
