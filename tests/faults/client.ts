import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Answer } from '../answers.js'
import { ADMIN } from '../app.js'

interface SendOptions {
  agent?: Agent
  token?: string
  body?: object
  /** Aborts the request. */
  signal?: AbortSignal
}

/**
 * Sends one request, over a connection of its own unless `agent` is given. The answer's body is
 * parsed when it is JSON. When no answer comes, the status is 0 and the body the error's message.
 */
export function send(
  method: string,
  url: string,
  { agent = new Agent(), token, body, signal }: SendOptions = {},
) {
  return new Promise<Answer>((done) => {
    const sent = request(url, {
      agent,
      method,
      signal,
      headers: {
        ...(token && { cookie: `auth_token=${token}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
    })
    sent.on('error', (error) => done({ status: 0, body: error.message }))
    sent.on('response', async (response) => {
      const received = await text(response).catch(String)
      done({ status: response.statusCode ?? 0, body: parse(received) })
    })
    sent.end(body && JSON.stringify(body))
  })
}

function parse(received: string) {
  try {
    return JSON.parse(received)
  } catch {
    return received
  }
}

/** Logs in the first administrator, or another user with the same password; returns the token. */
export async function login(
  url: string,
  strNombreUsuario = ADMIN.strNombreUsuario,
): Promise<string> {
  const credentials = { ...ADMIN, strNombreUsuario, captchaToken: 'humano' }
  const { status, body } = await send('POST', `${url}/api/auth/login`, { body: credentials })
  if (status !== 200) throw new Error(`login failed: ${JSON.stringify(body)}`)
  return body.token
}
