import { text } from 'node:stream/consumers'
import { listen } from './local.js'

/**
 * Starts a stand-in for the captcha service on 127.0.0.1. The stand-in verifies tokens at `url`. It
 * accepts every form with a `secret` and a token, unless the token is `rechazar`. For tests,
 * `requests` lists the last 100 forms that the stand-in has received.
 */
export async function startCaptcha() {
  const requests: Record<string, string>[] = []
  const server = await listen(async (request, response) => {
    const body = await text(request).catch(() => '')
    const form = Object.fromEntries(new URLSearchParams(body))
    requests.push(form)
    if (requests.length > 100) requests.shift()

    const { secret, response: token } = form
    const isAccepted = token && token !== 'rechazar'
    const success = Boolean(secret && isAccepted)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ success }))
  })
  return { ...server, url: `${server.url}/siteverify`, requests }
}
