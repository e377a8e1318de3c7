import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type CaptchaServer = {
  url: string
  requests: Record<string, string>[]
  close(): Promise<void>
}

/**
 * Starts a stand-in for a captcha's verification endpoint on 127.0.0.1: every token but an empty
 * one and `rechazar` is good. `url` is the full address, `requests` the last 100 forms it got.
 * Throws if the port is taken.
 */
export async function startCaptcha(port = 0): Promise<CaptchaServer> {
  const requests: Record<string, string>[] = []
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST' || request.url !== '/siteverify') {
      response.writeHead(404).end()
      return
    }
    const form = Object.fromEntries(new URLSearchParams(await text(request).catch(() => '')))
    requests.push(form)
    if (requests.length > 100) requests.shift()
    const errors = verify(form)
    const answer = errors.length ? { success: false, 'error-codes': errors } : { success: true }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/siteverify`,
    requests,
    close: async () => {
      const closed = new Promise((done) => server.close(done))
      server.closeAllConnections()
      await closed
    },
  }
}

function verify({ secret, response }: Record<string, string>): string[] {
  const errors = []
  if (!secret) errors.push('missing-input-secret')
  if (!response) errors.push('missing-input-response')
  if (response === 'rechazar') errors.push('invalid-input-response')
  return errors
}
