import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { closeAtEnd } from './cleanup.js'

/**
 * A captcha service that says yes at once, or leaves everybody `waiting` while it `isHanging`;
 * ends after the tests of the file.
 */
export async function startHangingCaptcha() {
  const waiting: ServerResponse[] = []
  const captcha = { url: '', waiting, isHanging: false }
  const server = createServer((_request, response) => {
    if (captcha.isHanging) waiting.push(response)
    else response.end('{"success":true}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  captcha.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  closeAtEnd(() => server.close())
  return captcha
}
