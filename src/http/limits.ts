import { pipeline, type Readable, Transform } from 'node:stream'
import { finished } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import underPressure from '@fastify/under-pressure'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Failure } from './failures.js'
import { fairShare } from './fair-share.js'

/** The largest bodies in bytes: of most routes, of login and logout, of the matrix. */
export const BODY_LIMIT = 64 * 1024
export const SMALL_BODY_LIMIT = 16 * 1024
export const MATRIX_BODY_LIMIT = 1024 * 1024

/** The most JSON beside the longest text, as that is slow to parse, and the quotes looked at. */
const MAX_JSON = 1024 * 1024
const MAX_QUOTES = 1000
/** Pieces of a body below this size are joined, so many at a time: each takes 400 bytes by itself. */
const SMALL_PIECE = 1000
const MAX_PIECES = 50
/**
 * Bytes of bodies above BODY_LIMIT at a time, where no single one is so large that it needs more. A
 * body takes some four times its size of memory.
 */
const MAX_LARGE_BODIES = 64 * 1024 * 1024
/** Requests that the service works on at a time, those whose bodies still come in left out. */
const MAX_IN_FLIGHT = 400
/** In milliseconds: how late the event loop may be, and how long a refusal is held back. */
const MAX_LOOP_DELAY = 1000
const REFUSAL_DELAY = 1000

/** Takes JSON bodies alone, empty ones as none at all; refuses more JSON than any route wants. */
export function parseJsonBodies(app: FastifyInstance) {
  app.removeAllContentTypeParsers()
  async function parse(_request: FastifyRequest, body: string) {
    if (body === '') return undefined
    if (body.length - longestText(body) > MAX_JSON) throw new Failure('tooLarge')
    try {
      return JSON.parse(body)
    } catch {
      // The parser's own text quotes the body.
      throw new Failure('noJson')
    }
  }
  app.addContentTypeParser('application/json', { parseAs: 'string' }, parse)
}

/** The length of the longest text in a body: what follows the end of another one is none. */
function longestText(body: string) {
  const pieces = body.split('"', MAX_QUOTES).slice(1)
  return Math.max(0, ...pieces.map((piece) => (/^[\s,:}\]]/.test(piece) ? 0 : piece.length)))
}

function joinPieces(payload: Readable) {
  const pieces: Buffer[] = []
  const joined = new Transform({
    transform(piece, _encoding, done) {
      const isKept = pieces.push(piece) < MAX_PIECES && piece.length < SMALL_PIECE
      done(null, isKept ? undefined : Buffer.concat(pieces.splice(0)))
    },
    flush: (done) => done(null, Buffer.concat(pieces)),
  })
  // Unlike `pipe` it fails with the payload, when the client goes: else nobody would be told.
  return pipeline(payload, joined, () => {})
}

/** Throws the Failure `busy` after a while: clients that come again at once must not keep us busy. */
export async function refuse(): Promise<never> {
  await sleep(REFUSAL_DELAY)
  throw new Failure('busy')
}

/**
 * Throws the Failure `busy` for too many requests or large bodies, or while the event loop is late.
 * The large bodies of one sharer (see turns.ts) take half of the bytes at most; others of theirs wait.
 */
export async function limitLoad(app: FastifyInstance, largestBody: number) {
  const maxLargeBodies = Math.max(MAX_LARGE_BODIES, 2 * largestBody)
  const shares = fairShare(maxLargeBodies / 2)
  const inFlight = new Set<FastifyRequest>()
  const largeBodies = new Map<FastifyRequest, () => void>()
  let largeBytes = 0

  await app.register(underPressure, { maxEventLoopDelay: MAX_LOOP_DELAY, pressureHandler: refuse })

  async function enter(request: FastifyRequest) {
    if (inFlight.size >= MAX_IN_FLIGHT) await refuse()
    inFlight.add(request)
  }

  async function takeLargeBody({ sharer, socket }: FastifyRequest, bytes: number) {
    // Requests that nobody's share is counted for have one together.
    const giveBack = await shares.take(sharer ?? 0, bytes, socket)
    if (largeBytes + bytes > maxLargeBodies) {
      giveBack()
      throw new Failure('busy')
    }
    largeBytes += bytes
    return () => {
      largeBytes -= bytes
      giveBack()
    }
  }

  app.addHook('onRequest', async (request) => enter(request))
  app.addHook('preParsing', async (request, _reply, payload) => {
    inFlight.delete(request)
    const { bodyLimit } = request.routeOptions
    const { 'transfer-encoding': isUnknown, 'content-length': length = 0 } = request.headers
    const bytes = isUnknown ? bodyLimit : Number(length)
    // Fastify refuses one that is too large before it is read.
    if (bytes === 0 || bytes > bodyLimit) return payload
    if (bytes > BODY_LIMIT) largeBodies.set(request, await takeLargeBody(request, bytes))
    return joinPieces(payload as Readable)
  })
  app.addHook('preValidation', async (request) => enter(request))
  app.addHook('onSend', async (request) => {
    inFlight.delete(request)
    largeBodies.get(request)?.()
    largeBodies.delete(request)
    if (request.raw.complete) return
    // Its client may look at the answer only after it has sent all, and would else see a reset
    // connection. Nobody is left to be answered where this fails. What is joined is not read any more,
    // and would hold it up.
    await finished(request.raw.unpipe().resume(), { writable: false }).catch(() => {})
  })
}
