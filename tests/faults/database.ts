import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../../src/dev/postgres.js'
import { childrenOf, readStat } from '../bench/measure.js'
import { closeAtEnd } from '../cleanup.js'

export type Database = Awaited<ReturnType<typeof startDatabase>>

/** Returns a path for a server's folder that does not exist yet. */
export const newFolder = () => join(tmpdir(), `llavero-faults-${randomBytes(6).toString('hex')}`)

/**
 * Starts a PostgreSQL that has fsync on, as by default, and that can be killed, frozen and started
 * again on the same port. It ends after the tests of the file, and its data is deleted.
 */
export async function startDatabase(settings: Record<string, string> = {}, folder = newFolder()) {
  let server = await startPostgres({ folder, settings })
  const { port, url } = server
  let frozen: number[] = []
  const thaw = () => {
    for (const pid of frozen.splice(0)) process.kill(pid, 'SIGCONT')
  }
  closeAtEnd(async () => {
    thaw()
    await server.stop()
    await rm(server.folder, { recursive: true })
    await rm(folder, { force: true })
  })

  return {
    port,
    url,
    folder: server.folder,
    /** Kills all processes at once, as a power failure would; resolves when they have ended. */
    async kill() {
      const pids = freezeAll(server.pid)
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      while (pids.some(isRunning)) await new Promise((done) => setTimeout(done, 5))
      await server.stop()
    },
    /** Stops all processes with SIGSTOP; returns a function that lets them continue. */
    freeze() {
      frozen = freezeAll(server.pid)
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

/**
 * Freezes a server's processes, first the postmaster so that it forks no more; returns their ids.
 */
function freezeAll(postmaster: number) {
  process.kill(postmaster, 'SIGSTOP')
  const children = childrenOf(postmaster)
  for (const pid of children) process.kill(pid, 'SIGSTOP')
  return [postmaster, ...children]
}

const isRunning = (pid: number) => !['Z', undefined].includes(readStat(pid)?.state)
