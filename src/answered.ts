import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/**
 * Calls `listener` once for each request: when its answer is out, or can't get out any more because
 * the client has gone (`isAborted`). Fastify's `onResponse` says nothing of the latter.
 */
export function whenAnswered(
  app: FastifyInstance,
  listener: (request: FastifyRequest, reply: FastifyReply, isAborted: boolean) => void,
) {
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { raw } = reply
    let isAborted = true
    const end = () => listener(request, reply, isAborted)
    if (raw.destroyed) {
      end()
    } else {
      raw.once('finish', () => {
        isAborted = false
      })
      raw.once('close', end)
    }
    done()
  })
}
