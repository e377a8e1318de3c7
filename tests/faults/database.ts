import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { afterAll } from 'vitest'
import { startPostgres } from '../../src/dev/postgres.js'

export type Database = Awaited<ReturnType<typeof startDatabase>>

const closing: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

/** The name for a server's folder that is not there yet. */
export const newFolder = () => join(tmpdir(), `llavero-faults-${randomBytes(6).toString('hex')}`)

/**
 * A PostgreSQL of this file's own, as careful with the disk as in production, which can be killed,
 * frozen and started again on the same port. Gone with its data after the file's tests.
 */
export async function startDatabase(settings: Record<string, string> = {}, folder = newFolder()) {
  let server = await startPostgres({ folder, settings })
  const { port, url } = server
  let frozen: number[] = []
  const thaw = () => {
    for (const pid of frozen.splice(0)) process.kill(pid, 'SIGCONT')
  }
  closing.push(async () => {
    thaw()
    await server.stop()
    await rm(server.folder, { recursive: true })
    await rm(folder, { force: true })
  })

  return {
    port,
    url,
    folder: server.folder,
    dataDir: server.dataDir,
    /** All of its processes at once, as when the machine loses power; gone when this resolves. */
    async kill() {
      const pids = stopAll(server.pid)
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      while (pids.some(isRunning)) await new Promise((done) => setTimeout(done, 5))
      await server.stop()
    },
    /** Stops all of its processes where they stand; gives what lets them go on. */
    freeze() {
      frozen = stopAll(server.pid)
      return thaw
    },
    /** Resolves when it accepts connections. */
    async start() {
      server = await startPostgres({ folder, port, settings })
    },
    async stop() {
      await server.stop()
    },
  }
}

/** Freezes a server, the first process first, as it starts no others then; gives their ids. */
function stopAll(postmaster: number) {
  process.kill(postmaster, 'SIGSTOP')
  const children = readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && statOf(pid)?.parent === postmaster)
  for (const pid of children) process.kill(pid, 'SIGSTOP')
  return [postmaster, ...children]
}

/** The state and the parent of a process, of which there may be none. */
function statOf(pid: number) {
  try {
    const [, state, parent] = /\) (\w) (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
    return { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}

const isRunning = (pid: number) => !['Z', undefined].includes(statOf(pid)?.state)

/** A connection of the test's own, closed after the file's tests. */
export function connectTo(url: string) {
  const sql = postgres(url, { max: 1, onnotice: () => {}, idle_timeout: 0 })
  closing.push(() => sql.end({ timeout: 1 }))
  return sql
}
