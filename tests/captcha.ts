import type { ServerResponse } from 'node:http'
import { serve } from './serve.js'

/**
 * Starts a captcha service that accepts every token at once, or keeps its responses in `waiting`
 * while `isHanging` is true. It ends after the tests of the file.
 */
export async function startHangingCaptcha() {
  const waiting: ServerResponse[] = []
  const captcha = { url: '', waiting, isHanging: false }
  captcha.url = await serve((_request, response) => {
    if (captcha.isHanging) waiting.push(response)
    else response.end('{"success":true}')
  })
  return captcha
}
