import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../src/dev/postgres.js'
import { stop } from '../service.js'
import type { Job, Load } from './load.js'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export const SERVERS = {
  service: here('../../dist/server.js'),
  plain: here('./references/plain.js'),
}

/** How long a server may take until its first answer, in milliseconds. */
const START_TIMEOUT = 20_000

export interface Server {
  url: string
  pid: number
  stop(): Promise<void>
}

/** Starts a server and waits for its first answer. The log is written to a file in `folder`. */
export async function startServer(
  file: string,
  env: Record<string, string>,
  folder: string,
): Promise<Server> {
  const port = await freePort()
  const log = openSync(join(folder, `${port}.log`), 'w')
  const begin = performance.now()
  const child = spawn(process.execPath, [file], {
    env: {
      PATH: process.env.PATH,
      HOST: '127.0.0.1',
      PORT: `${port}`,
      ...env,
    },
    stdio: ['ignore', log, 'inherit'],
  })
  closeSync(log)
  stopAtExit(child)
  const url = `http://127.0.0.1:${port}`
  while (!(await answers(`${url}/health/live`))) {
    const status = child.exitCode ?? child.signalCode
    if (status !== null) throw new Error(`${file} ended with ${status}`)
    if (performance.now() - begin > START_TIMEOUT) throw new Error(`${file} does not answer`)
    await sleep(2)
  }
  return { url, pid: child.pid ?? 0, stop: () => stop(child) }
}

export interface Generator {
  /**
   * Runs a job; one job at a time. Throws an error if a request failed (see `failed` in Load), or
   * if none was answered with 2xx.
   */
  run(job: Job): Promise<Load>
  stop(): Promise<void>
}

export function startGenerator(): Generator {
  const child = fork(here('./load.ts'), { execArgv: ['--import', 'tsx'] })
  stopAtExit(child)
  const ended = new AbortController()
  child.once('exit', () => ended.abort())
  return {
    run: async (job) => {
      child.send(job)
      const [load] = (await once(child, 'message', { signal: ended.signal })) as [Load]
      if (load.failed > 0 || load.answered === 0) {
        throw new Error(
          `${job.url}: ${load.failed} requests failed (${load.failures}), ${load.answered} did not`,
        )
      }
      return load
    },
    stop: () => stop(child),
  }
}

/** Ends the child when this process ends, if it has not ended before. */
function stopAtExit(child: ChildProcess) {
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
}

const answers = (url: string) =>
  fetch(url, { headers: { connection: 'close' } }).then(
    ({ ok }) => ok,
    () => false,
  )
