import type { Config } from '../config.js'
import { Failure } from '../http/answers/failures.js'

/**
 * How long the captcha service may take from the request to the end of its answer, in milliseconds.
 */
const TIMEOUT = 5000
/** How many tokens may be verified at a time. */
const MAX_PENDING = 256
/** The longest answer that is read, in bytes. Real answers have a few hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024

/**
 * Returns a function that verifies captcha tokens by the siteverify protocol, which reCAPTCHA,
 * hCaptcha and Turnstile share. It sends one request for each token and does not retry.
 *
 * The function returns whether the captcha service accepts `token`. `remoteip` is the IP address of
 * the client. The function throws the Failure `unavailable` if the service cannot be reached or its
 * answer cannot be used, and `busy` if too many tokens are being verified.
 */
export function captchaVerifier({ CAPTCHA_SECRET, CAPTCHA_VERIFY_URL }: Config) {
  let pending = 0

  return async (token: string, remoteip: string) => {
    if (pending >= MAX_PENDING) throw new Failure('busy')
    pending += 1
    const form = { secret: CAPTCHA_SECRET, response: token, remoteip }
    try {
      // node-fetch is loaded at the first login, so that the service starts faster.
      const { default: fetch } = await import('node-fetch')
      const response = await fetch(CAPTCHA_VERIFY_URL, {
        method: 'POST',
        body: new URLSearchParams(form),
        signal: AbortSignal.timeout(TIMEOUT),
        size: MAX_ANSWER_BYTES,
        redirect: 'error',
      })
      const { success } = Object(await response.json())
      if (success === false) return false
      if (success === true && response.ok) return true
      throw new Error('the captcha service has not decided')
    } catch (cause) {
      throw new Failure('unavailable', undefined, { cause })
    } finally {
      pending -= 1
    }
  }
}
