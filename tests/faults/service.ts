import { readdirSync } from 'node:fs'
import { Agent } from 'node:http'
import { afterAll } from 'vitest'
import { startCaptcha } from '../../src/dev/captcha.js'
import { ADMIN_ENV } from '../app.js'
import { residentMb } from '../bench/measure.js'
import { type Environment, killAll, start } from '../service.js'
import { login, send } from './client.js'

export type Service = Awaited<ReturnType<typeof startService>>

const captcha = await startCaptcha()
afterAll(async () => {
  await killAll()
  await captcha.close()
})

/** Starts the compiled service, or another build, as a process with the administrator ADMIN. */
export async function startService(env: Environment, program?: string[]) {
  const launched = await start(
    {
      CAPTCHA_VERIFY_URL: captcha.url,
      ...ADMIN_ENV,
      LOGIN_RATE_LIMIT: '0',
      ...env,
    },
    program,
  )
  const pid = Number(launched.child.pid)
  const agent = new Agent({ keepAlive: true })

  return {
    ...launched,
    /** Sends a request; without an answer within 8 s, the status is 0. */
    call: (method: string, path: string, body?: object, token?: string) =>
      send(method, launched.address + path, {
        agent,
        token,
        body,
        signal: AbortSignal.timeout(8000),
      }),
    /**
     * Logs the administrator in, or another user with the same password; returns the token, which
     * every other replica accepts as well.
     */
    login: (strNombreUsuario?: string) => login(launched.address, strNombreUsuario),
    /** Returns the number of open descriptors and the resident memory in MB. */
    resources: () => ({
      handles: readdirSync(`/proc/${pid}/fd`).length,
      memory: residentMb(pid),
    }),
  }
}
