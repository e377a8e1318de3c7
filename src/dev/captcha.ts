import { text } from 'node:stream/consumers'
import { listen } from './listen.js'

/**
 * Starts a stand-in for the captcha service on 127.0.0.1. The stand-in verifies tokens at `url`. It
 * accepts every token that is not empty, except `rechazar`. For tests, `requests` lists the forms
 * that the stand-in has received.
 */
export async function startCaptcha() {
  const requests: Record<string, string>[] = []
  const server = await listen(async (request, response) => {
    const body = await text(request).catch(() => '')
    const form = Object.fromEntries(new URLSearchParams(body))
    requests.push(form)

    const { response: token = '' } = form
    const success = !['', 'rechazar'].includes(token)
    response.end(JSON.stringify({ success }))
  })
  return { ...server, url: `${server.url}/siteverify`, requests }
}
