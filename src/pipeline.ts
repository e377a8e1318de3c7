import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Requests of one connection that may wait for their answers; more end it. */
const MAX_IN_LINE = 16

/** The answers that a connection still owes, in the order of their requests. */
const lines = new WeakMap<Socket, Set<ServerResponse>>()

/**
 * Bounds the requests that a client sends without waiting for its answers: Node begins them all.
 * And tells the answers in line when their connection has gone: Node tells the first one alone, and
 * the others would keep what they have, open files too.
 */
export function boundPipelines(app: FastifyInstance) {
  app.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw
    const line = lines.get(socket) ?? startLine(socket)
    if (line.size >= MAX_IN_LINE || socket.destroyed) {
      socket.destroy()
      reply.hijack()
      return
    }
    line.add(reply.raw)
    reply.raw.once('close', () => line.delete(reply.raw))
    done()
  })
}

function startLine(socket: Socket) {
  const line = new Set<ServerResponse>()
  lines.set(socket, line)
  socket.once('close', () => {
    for (const answer of [...line]) {
      if (answer.socket) continue
      answer.destroyed = true
      answer.emit('close')
    }
  })
  return line
}

/** Whether a request of the connection has come in whole and waits for its answer. */
export const owesAnswer = (socket: Socket) =>
  [...(lines.get(socket) ?? [])].some(({ req }) => req.complete)
