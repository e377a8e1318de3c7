import type { Config } from '../config.js'
import { Failure } from '../http/failures.js'

/** Whether the verification endpoint accepts `token`; `remoteip` is the caller's address. */
export type VerifyCaptcha = (token: string, remoteip: string) => Promise<boolean>

const TIMEOUT = 5000
/** Real answers have some hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024

/**
 * The siteverify protocol, as reCAPTCHA, hCaptcha and Turnstile speak it; one attempt of 5 s.
 * The function throws the Failure `unavailable` when the endpoint gives no sensible answer.
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
