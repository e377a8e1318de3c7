import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Requests of one connection that may wait for their answers; more end it. */
const MAX_UNANSWERED = 16

/** The answers that a connection still owes, in the order of their requests. */
const unanswered = new WeakMap<Socket, Set<ServerResponse>>()

/**
 * Bounds the requests that a client sends without waiting for its answers: Node begins them all.
 * And tells the answers in line when their connection has gone: Node tells the first one alone, and
 * the others would keep what they have, open files too.
 */
export function boundPipelines(app: FastifyInstance) {
  app.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw
    const queue = unanswered.get(socket) ?? startQueue(socket)
    if (queue.size >= MAX_UNANSWERED || socket.destroyed) {
      // Those behind it have been read from the connection already.
      if (!socket.destroyed) request.log.warn({ ip: request.ip }, 'too many requests in line')
      socket.destroy()
      reply.hijack()
      return
    }
    queue.add(reply.raw)
    reply.raw.once('close', () => queue.delete(reply.raw))
    done()
  })
}

function startQueue(socket: Socket) {
  const queue = new Set<ServerResponse>()
  unanswered.set(socket, queue)
  socket.once('close', () => {
    for (const answer of [...queue]) {
      if (answer.socket) continue
      answer.destroyed = true
      answer.emit('close')
    }
  })
  return queue
}

/** Whether a request of the connection has come in whole, or is being answered already. */
export const owesAnswer = (socket: Socket) =>
  [...(unanswered.get(socket) ?? [])].some(({ req, headersSent }) => req.complete || headersSent)
