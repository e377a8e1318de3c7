import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export type Environment = Record<string, string>

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** The arguments with which Node runs the compiled service. */
const COMPILED = ['dist/server.js']

/** The variables without a default, except DATABASE_URL. */
export const SECRETS = {
  JWT_SECRET: 'un-secreto-de-firma-de-36-caracteres',
  CAPTCHA_SECRET: 'secreto-del-captcha',
  CLOUDINARY_URL: 'cloudinary://llave:secreto-de-nube@nube',
}

const children: ChildProcess[] = []

export const hasEnded = ({ exitCode, signalCode }: ChildProcess) =>
  exitCode !== null || signalCode !== null

/** Ends a process that still runs. */
export async function stop(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM') {
  if (hasEnded(child)) return
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}

/** Kills the launched processes that still run; for `afterEach` or `afterAll`. */
export async function killAll() {
  for (const child of children.splice(0)) await stop(child, 'SIGKILL')
}

/**
 * Starts the compiled service, or another program, as a process whose environment has only `env`
 * and PATH.
 */
export function launch(env: Environment, program = COMPILED) {
  const child = spawn(process.execPath, program, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  let log = ''
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (chunk) => {
    log += chunk
  })
  const stderr = text(child.stderr)
  // At `close` both pipes have ended, so that stdout and stderr are complete.
  const ended = once(child, 'close').then(async ([code, signal]) => ({
    code,
    signal,
    stderr: await stderr,
  }))
  const lines = (): Record<string, unknown>[] =>
    log
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  return { child, ended, lines, readLog: () => log }
}

/**
 * Starts the compiled service, or another program, with SECRETS and `env` on a free port, and
 * resolves once it listens on `address`. Throws when the process ends before that.
 */
export async function start(env: Environment, program?: string[]) {
  const { ended, ...launched } = launch(
    { ...SECRETS, HOST: '127.0.0.1', PORT: '0', ...env },
    program,
  )
  const early = ended.then((end) => ({ early: end }))
  for (;;) {
    const line = launched.lines().find(({ msg }) => /^Server listening at /.test(String(msg)))
    const address = /http:\/\/\S+/.exec(String(line?.msg))?.[0]
    if (address) return { ...launched, ended, address }
    const failed = await Promise.race([early, sleep(20)])
    if (failed) throw new Error(`it ended: ${JSON.stringify(failed.early)}`)
  }
}
