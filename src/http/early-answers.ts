import { finished } from 'node:stream'
import type { FastifyInstance } from 'fastify'

/**
 * How many bytes of one body may be read and discarded. The longest string in V8 has about this
 * many characters. A browser or Node makes a JSON body from one string, so the body is hardly ever
 * larger.
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
    raw.resume()
    // After an error the hook continues as well: the connection is closed, and nobody gets the answer.
    finished(raw, { writable: false }, () => done())
  })
}
