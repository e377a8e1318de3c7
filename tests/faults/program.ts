import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Debian has them where an ordinary user's PATH does not lead. */
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']

/** Where a program is installed; undefined where it is not. */
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
 * Runs a server program until `stop`, from when it listens on `port`. Throws with what it wrote
 * when it ends before that, or does not listen in 10 s.
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
  for (const deadline = Date.now() + 10_000; !(await listens(port)); await sleep(20)) {
    if (!hasEnded(child) && Date.now() < deadline) continue
    await stop(child)
    throw new Error(`${file} does not listen:\n${log}`)
  }
  return { readLog: () => log, stop: () => stop(child) }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) =>
  exitCode !== null || signalCode !== null

/** Not by SIGKILL: the workers of some would outlive it. */
async function stop(child: ChildProcess) {
  if (hasEnded(child)) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
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
