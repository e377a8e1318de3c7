import pLimit from 'p-limit'
import type { Config } from '../config.js'
import { Failure } from '../http/answers/failures.js'

/**
 * Returns whether the captcha service accepts `token`. `remoteip` is the IP address of the client.
 * Throws the Failure `unavailable` if the service cannot be reached or its answer cannot be used, and
 * `busy` if too many tokens are being verified.
 */
export type VerifyCaptcha = (token: string, remoteip: string) => Promise<boolean>

/**
 * How long the captcha service may take from the request to the end of its answer, in milliseconds.
 */
const TIMEOUT = 5000
/**
 * How many tokens may be verified at a time. As many password hashes may wait (see password.ts), so
 * more logins at once could not be finished anyway.
 */
const MAX_PENDING = 256
/** The longest answer that is read, in bytes. Real answers have a few hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024

/**
 * Returns a function that verifies captcha tokens by the siteverify protocol, which reCAPTCHA,
 * hCaptcha and Turnstile share. It sends one request for each token and does not retry.
 */
export function captchaVerifier({ CAPTCHA_SECRET, CAPTCHA_VERIFY_URL }: Config): VerifyCaptcha {
  const limit = pLimit(MAX_PENDING)

  async function verify(token: string, remoteip: string) {
    const form = { secret: CAPTCHA_SECRET, response: token, remoteip }
    try {
      const { ok, success } = await post(CAPTCHA_VERIFY_URL, form)
      if (success === false) return false
      if (success === true && ok) return true
      throw new Error('the captcha service has not decided')
    } catch (cause) {
      throw new Failure('unavailable', undefined, { cause })
    }
  }

  return async (token, remoteip) => {
    if (limit.activeCount >= MAX_PENDING) throw new Failure('busy')
    return limit(verify, token, remoteip)
  }
}

/**
 * Sends the form. Returns whether the status of the answer is a success (2xx), and the property `success`
 * of its body. Throws an error if there is no answer in time or its body is not JSON.
 */
async function post(url: string, form: Record<string, string>) {
  // node-fetch is loaded at the first login, so that the service starts faster.
  const { default: fetch } = await import('node-fetch')
  const response = await fetch(url, {
    method: 'POST',
    body: new URLSearchParams(form),
    signal: AbortSignal.timeout(TIMEOUT),
    size: MAX_ANSWER_BYTES,
    redirect: 'error',
  })
  const { success } = Object(await response.json())
  return { ok: response.ok, success }
}
