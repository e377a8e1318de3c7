import type { Config } from '../config.js'
import { Failure } from '../http/failures.js'

/**
 * Resolves to whether the captcha service accepts `token`. `remoteip` is the IP address of the
 * client. Throws the Failure `unavailable` when the service cannot be asked or its answer cannot be
 * used.
 */
export type VerifyCaptcha = (token: string, remoteip: string) => Promise<boolean>

/** The most time from a request to the end of its answer, in milliseconds. */
const TIMEOUT = 5000
/** The longest answer that is read. Real answers have a few hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024

/**
 * Returns a function that verifies captcha tokens by the siteverify protocol, which reCAPTCHA,
 * hCaptcha and Turnstile share. It sends one request for each token and does not retry.
 */
export function captchaVerifier({ CAPTCHA_SECRET, CAPTCHA_VERIFY_URL }: Config): VerifyCaptcha {
  return async (token, remoteip) => {
    // Loaded with the first login, which spares every start 20 ms.
    const { default: fetch } = await import('node-fetch')
    const answer = await fetch(CAPTCHA_VERIFY_URL, {
      method: 'POST',
      body: new URLSearchParams({ secret: CAPTCHA_SECRET, response: token, remoteip }),
      signal: AbortSignal.timeout(TIMEOUT),
      size: MAX_ANSWER_BYTES,
      redirect: 'error',
    })
      .then(async (response) => ({ ok: response.ok, body: await response.json() }))
      .catch((cause) => {
        throw unavailable(cause)
      })
    const success = (answer.body as { success?: unknown } | null)?.success
    if (success === false) return false
    if (success === true && answer.ok) return true
    throw unavailable()
  }
}

const unavailable = (cause?: unknown) => new Failure('unavailable', undefined, { cause })
