import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasEnded, stop } from '../service.js'

/** The folders of PATH, and those where Debian has servers that an ordinary PATH lacks. */
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']

/** Returns the path of an installed program, or undefined. */
export function installed(name: string): string | undefined {
  return FOLDERS.map((folder) => join(folder, name)).find((file) => {
    try {
      accessSync(file, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/**
 * Starts a server program and resolves when it listens on `port`. Throws with its output when it
 * ends before that, or does not listen within 30 s.
 */
export async function run(
  file: string,
  args: string[],
  { port, cwd, env }: { port: number; cwd: string; env?: Record<string, string> },
) {
  const child = spawn(file, args, {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  for (const pipe of [child.stdout, child.stderr]) {
    pipe.on('data', (chunk) => {
      log += chunk
    })
  }
  for (const deadline = Date.now() + 30_000; !(await listens(port)); await sleep(20)) {
    if (!hasEnded(child) && Date.now() < deadline) continue
    await stop(child)
    throw new Error(`${file} does not listen:\n${log}`)
  }
  // With SIGTERM, because the worker processes of a program may outlive a SIGKILL.
  return { readLog: () => log, stop: () => stop(child) }
}

async function listens(port: number) {
  const socket = connect(port, '127.0.0.1')
  const answered = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return answered
}
