import { finished } from 'node:stream'
import type { FastifyInstance } from 'fastify'

/**
 * Delays an answer until the client has sent its whole body. The rest of the body is read and
 * discarded. Many clients read the answer only after they have sent everything. If the connection were
 * closed before that, such a client would see a reset connection instead of the answer.
 */
export function answerAfterBody(app: FastifyInstance) {
  app.addHook('onSend', ({ raw }, _reply, _payload, done) => {
    if (raw.complete) return done()
    // An error means that the client has disconnected. Nobody waits for the answer in that case.
    finished(raw.resume(), { writable: false }, () => done())
  })
}
