import { finished } from 'node:stream/promises'
import type { FastifyInstance } from 'fastify'

/**
 * Delays an answer until the client has sent its whole body. The rest of the body is read and
 * discarded. Many clients read the answer only after they have sent everything. If the connection were
 * closed before that, such a client would see a reset connection instead of the answer.
 */
export function answerAfterBody(app: FastifyInstance) {
  app.addHook('onSend', async ({ raw }) => {
    if (raw.complete) return
    // This rejects when the client has disconnected. Nobody waits for the answer in that case.
    await finished(raw.resume(), { writable: false }).catch(() => {})
  })
}
