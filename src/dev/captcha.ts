import { text } from 'node:stream/consumers'
import { listen } from './local.js'

/**
 * Starts a stand-in for the captcha service. It verifies tokens at `url`, and accepts every token except
 * the empty one and `rechazar`. `requests` are the last 100 forms that it has received.
 */
export async function startCaptcha() {
  const requests: Record<string, string>[] = []
  const server = await listen(async (request, response) => {
    const body = await text(request).catch(() => '')
    const form = Object.fromEntries(new URLSearchParams(body))
    requests.push(form)
    if (requests.length > 100) requests.shift()

    const { secret, response: token } = form
    const isValid = token && token !== 'rechazar'
    const success = Boolean(secret && isValid)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ success }))
  })
  return { ...server, url: `${server.url}/siteverify`, requests }
}
