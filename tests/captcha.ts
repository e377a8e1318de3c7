import type { ServerResponse } from 'node:http'
import { serve } from './cleanup.js'

/**
 * A captcha service that says yes at once, or leaves everybody `waiting` while it `isHanging`;
 * ends after the tests of the file.
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
