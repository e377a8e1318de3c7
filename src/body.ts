import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type GiveBack, lendBytes } from './budget.js'
import { Failure } from './failure.js'

/** A body this many times larger than the limit is no longer read to its end. */
const DRAIN_FACTOR = 4
/** Up to this many bytes a body is read whatever else is in memory. */
const SMALL_BODY = 64 * 1024
/**
 * Bytes of larger bodies in memory at a time, from before they are read until their requests are
 * answered; at least two of the largest. A body takes some four times its size on its way.
 */
const MEMORY = 64 * 1024 * 1024
/**
 * The least a body may come in at on average, in bytes a second, from GRACE milliseconds on: others
 * may be waiting for the memory of a larger one.
 */
const LEAST_RATE = { small: 240, large: 8 * 1024 }
const GRACE = 5000

declare module 'fastify' {
  interface FastifyRequest {
    /** The memory of its body, while it has any. */
    giveBackMemory: GiveBack | null
  }
}

/**
 * Takes JSON bodies of up to `limit` bytes and no other content type; throws the Failure `tooLarge`
 * for a larger one. An empty body is as none at all. Throws the Failure `busy` where there is no
 * memory for a body in time, and cuts the connection of one that comes in too slowly.
 */
export function parseJsonBodies(app: FastifyInstance, limit: number) {
  const parseJson = app.getDefaultJsonParser('remove', 'remove')
  const memory = lendBytes(Math.max(MEMORY, 2 * limit))
  // Whoever may do nothing can't take what is for those who may: who has no session, or comes only
  // to end it.
  const memoryForStrangers = lendBytes(limit)

  app.decorateRequest('giveBackMemory', null)
  // Not when the answer has been read or the client has gone: the image may still be on its way.
  app.addHook('onSend', (request, _reply, _payload, done) => {
    request.giveBackMemory?.()
    done()
  })

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    const isStranger = !request.sesion || !request.routeOptions.schema?.body
    const body = await readBody(request, limit, async (bytes) => {
      request.giveBackMemory = await (isStranger ? memoryForStrangers : memory)(bytes)
    })
    if (body === '') return undefined
    return new Promise((resolve, reject) => {
      parseJson(request, body, (error, value) => {
        // The parser's own text quotes the body.
        if (error) reject(noJson())
        else resolve(value)
      })
    })
  })
}

/**
 * Reads and forgets what is left of a body of at most some times `limit` bytes: before a request
 * is refused early, so that its client sees the answer and not a reset connection. Cuts it where it
 * comes in too slowly. Gives whether that was all of it.
 */
export async function drainBody({ raw }: FastifyRequest, limit: number): Promise<boolean> {
  if (raw.readableEnded || raw.destroyed || !hasBody(raw)) return true
  let left = limit * DRAIN_FACTOR
  const isLarge = declaredSize(raw) > SMALL_BODY
  const stopWatching = watchRate(raw, isLarge ? LEAST_RATE.large : LEAST_RATE.small)
  try {
    for await (const chunk of chunksOf(raw)) {
      left -= chunk.length
      if (left < 0) return false
    }
  } catch {
    // The client has gone: nobody is left to answer.
  } finally {
    stopWatching()
  }
  return true
}

/** Whoever stops reading can go on later, and the request stays whole. */
const chunksOf = (raw: IncomingMessage): AsyncIterable<Buffer> =>
  raw.iterator({ destroyOnReturn: false })

const declaredSize = ({ headers }: IncomingMessage) => Number(headers['content-length'] ?? 0)

const hasBody = (raw: IncomingMessage) =>
  raw.headers['transfer-encoding'] !== undefined || declaredSize(raw) > 0

/** The body's text; `reserve` is called before more than SMALL_BODY of it are read. */
async function readBody(
  { raw }: FastifyRequest,
  limit: number,
  reserve: (bytes: number) => Promise<void>,
): Promise<string> {
  const declared = declaredSize(raw)
  if (declared > limit) throw tooLarge()
  let isReserved = declared > SMALL_BODY
  if (isReserved) await reserve(declared)
  let stopWatching = watchRate(raw, isReserved ? LEAST_RATE.large : LEAST_RATE.small)
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of chunksOf(raw)) {
      size += chunk.length
      if (size > limit) throw tooLarge()
      // Nobody has said how large it will be.
      if (size > SMALL_BODY && !isReserved) {
        stopWatching()
        await reserve(limit)
        isReserved = true
        stopWatching = watchRate(raw, LEAST_RATE.large)
      }
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    // The client has gone: no fault of the service's.
    throw new Failure('malformed', 'El cuerpo no ha llegado entero')
  } finally {
    stopWatching()
  }
  if (isReserved) await nextTurn()
  return Buffer.concat(chunks).toString()
}

/** The body is no JSON. */
export const noJson = () => new Failure('malformed', 'El cuerpo no es JSON válido')

/** The body has more bytes than it may. */
export const tooLarge = () =>
  new Failure('tooLarge', 'El cuerpo de la petición es demasiado grande')

let turn = Promise.resolve()

/** Waits for a turn of the event loop that nobody else was given. */
function nextTurn() {
  turn = turn.then(() => setImmediate())
  return turn
}

/** Cuts the connection once less than `rate` bytes a second have come in on average. */
function watchRate(raw: IncomingMessage, rate: number) {
  const { socket } = raw
  const before = socket.bytesRead
  const begin = performance.now()
  const timer = setInterval(() => {
    const seconds = (performance.now() - begin - GRACE) / 1000
    if (socket.bytesRead - before < seconds * rate) raw.destroy()
  }, 1000)
  return () => clearInterval(timer)
}
