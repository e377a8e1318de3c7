import { finished } from 'node:stream'
import type { FastifyInstance } from 'fastify'

/**
 * The most bytes that are read and discarded. It is the length of the longest string in V8, so a page
 * in a browser cannot build a larger JSON body.
 */
const MAX_DISCARDED = 512 * 1024 * 1024

/**
 * Delays an answer until the client has sent its whole body. The rest of the body is read and
 * discarded. Many clients read the answer only after they have sent everything. If the connection were
 * closed before that, such a client would see a reset connection instead of the answer. If the rest has
 * more than MAX_DISCARDED bytes, the connection is closed without an answer.
 */
export function answerAfterBody(app: FastifyInstance) {
  app.addHook('onSend', ({ raw }, _reply, _payload, done) => {
    if (raw.complete) return done()
    let discarded = 0
    raw.on('data', (piece: Buffer) => {
      discarded += piece.length
      if (discarded > MAX_DISCARDED) raw.destroy()
    })
    // An error means that the connection has been closed. Nobody waits for the answer in that case.
    finished(raw.resume(), { writable: false }, () => done())
  })
}
