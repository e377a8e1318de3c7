import { text } from 'node:stream/consumers'
import { listen } from './local.js'

/**
 * Starts a stand-in for the captcha service, whose verification endpoint is at `url`. It accepts
 * every token except the empty one and `rechazar`. `requests` are the last 100 forms that it has
 * received.
 */
export async function startCaptcha() {
  const requests: Record<string, string>[] = []
  const server = await listen(async (request, response) => {
    const form = Object.fromEntries(new URLSearchParams(await text(request).catch(() => '')))
    requests.push(form)
    if (requests.length > 100) requests.shift()
    const success = Boolean(form.secret && form.response && form.response !== 'rechazar')
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ success }))
  })
  return { ...server, url: `${server.url}/siteverify`, requests }
}
