import { readdirSync } from 'node:fs'
import { afterAll } from 'vitest'
import { startCaptcha } from '../../src/dev/captcha.js'
import type { Answer } from '../answers.js'
import { ADMIN, ADMIN_ENV } from '../app.js'
import { residentMb } from '../bench/measure.js'
import { COMPILED, type Environment, killAll, start } from '../service.js'

export type Service = Awaited<ReturnType<typeof startService>>

const captcha = await startCaptcha()
afterAll(async () => {
  await killAll()
  await captcha.close()
})

/** The compiled service, or another build of it, as a process with ADMIN as its administrator. */
export async function startService(env: Environment, program = COMPILED) {
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
    /** One request with its whole answer. */
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
    /** Logs the administrator in and gives the token, which is good at every other service too. */
    async login(): Promise<string> {
      const credentials = { ...ADMIN, captchaToken: 'humano' }
      const { status, body } = await this.call('POST', '/api/auth/login', credentials)
      if (status !== 200) throw new Error(`login failed: ${JSON.stringify(body)}`)
      return body.token
    },
    /** Its open files and sockets, and its memory in MB. */
    resources: () => ({
      handles: readdirSync(`/proc/${pid}/fd`).length,
      memory: residentMb(pid),
    }),
  }
}
