import { finished } from 'node:stream/promises'
import type { FastifyInstance } from 'fastify'

/**
 * Holds back an answer until the client has sent its whole body, which is read and thrown away. Many
 * clients look for the answer only after they have sent everything. If the connection were closed
 * before that, such a client would see a reset connection and not the answer.
 */
export function answerAfterBody(app: FastifyInstance) {
  app.addHook('onSend', async ({ raw }) => {
    if (raw.complete) return
    // Fails when the client has gone, and then nobody waits for the answer.
    await finished(raw.resume(), { writable: false }).catch(() => {})
  })
}
