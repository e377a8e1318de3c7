import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Failure } from './failure.js'

/** A body this many times larger than the limit is no longer read to its end. */
const DRAIN_FACTOR = 4

/**
 * Takes JSON bodies of up to `limit` bytes and no other content type. A larger one is read to its
 * end before the Failure `tooLarge`: a client that is still sending would see a reset connection
 * and not the answer. An empty body is as none at all.
 */
export function parseJsonBodies(app: FastifyInstance, limit: number) {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    const body = await readBody(request, limit)
    if (body === '') return undefined
    return new Promise((resolve, reject) => {
      parseJson(request, body, (error, value) => {
        // The parser's own text quotes the body.
        if (error) reject(new Failure('malformed', 'El cuerpo no es JSON válido'))
        else resolve(value)
      })
    })
  })
}

/** How long a refused request may still send, in milliseconds. */
const DRAIN_TIMEOUT = 10_000

/**
 * Reads and forgets what is left of a body of at most some times `limit` bytes: before a request
 * is refused early, so that its client sees the answer and not a reset connection.
 */
export async function drainBody({ raw }: FastifyRequest, limit: number): Promise<void> {
  if (raw.readableEnded || raw.destroyed) return
  let left = limit * DRAIN_FACTOR
  const timer = setTimeout(() => raw.destroy(), DRAIN_TIMEOUT)
  try {
    for await (const chunk of raw) {
      left -= chunk.length
      if (left < 0) break
    }
  } catch {
    // The client has gone: nobody is left to answer.
  } finally {
    clearTimeout(timer)
  }
}

async function readBody({ raw }: FastifyRequest, limit: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of raw) {
      size += chunk.length
      if (size <= limit) chunks.push(chunk)
      else chunks.length = 0
      if (size > limit * DRAIN_FACTOR) break
    }
  } catch {
    // The client has gone: no fault of the service's.
    throw new Failure('malformed', 'El cuerpo no ha llegado entero')
  }
  if (size > limit) {
    throw new Failure('tooLarge', 'El cuerpo de la petición es demasiado grande')
  }
  return Buffer.concat(chunks).toString()
}
