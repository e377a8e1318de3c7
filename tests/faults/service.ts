import { readdirSync } from 'node:fs'
import { afterAll } from 'vitest'
import { startCaptcha } from '../../src/dev/captcha.js'
import type { Answer } from '../answers.js'
import { ADMIN, ADMIN_ENV } from '../app.js'
import { residentMb } from '../bench/measure.js'
import { type Environment, killAll, start } from '../service.js'

export type Service = Awaited<ReturnType<typeof startService>>

const captcha = await startCaptcha()
afterAll(async () => {
  await killAll()
  await captcha.close()
})

/** Starts the compiled service, or another build, as a process with the administrator ADMIN. */
export async function startService(env: Environment, program?: string[]) {
  const process = await start(
    {
      CAPTCHA_VERIFY_URL: captcha.url,
      ...ADMIN_ENV,
      LOGIN_RATE_LIMIT: '0',
      ...env,
    },
    program,
  )
  const pid = Number(process.child.pid)

  return {
    ...process,
    /** Sends a request; without an answer within 8 s, the status is 0. */
    async call(method: string, path: string, body?: object, token = ''): Promise<Answer> {
      try {
        const response = await fetch(process.address + path, {
          method,
          headers: {
            cookie: `auth_token=${token}`,
            ...(body && { 'content-type': 'application/json' }),
          },
          ...(body && { body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(8000),
        })
        return { status: response.status, body: await response.json() }
      } catch {
        return { status: 0, body: undefined }
      }
    },
    /**
     * Logs the administrator in, or another user with the same password; returns the token, which
     * every other replica accepts as well.
     */
    async login(strNombreUsuario = ADMIN.strNombreUsuario): Promise<string> {
      const credentials = { ...ADMIN, strNombreUsuario, captchaToken: 'humano' }
      const { status, body } = await this.call('POST', '/api/auth/login', credentials)
      if (status !== 200) throw new Error(`login failed: ${JSON.stringify(body)}`)
      return body.token
    },
    /** Returns the number of open descriptors and the resident memory in MB. */
    resources: () => ({
      handles: readdirSync(`/proc/${pid}/fd`).length,
      memory: residentMb(pid),
    }),
  }
}
