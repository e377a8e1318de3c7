import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../../src/dev/postgres.js'
import { SECRETS } from '../service.js'
import { openDatabase } from './data.js'
import { startGenerator, startServer } from './processes.js'

/** The resources that all sections share. */
export type Bench = Awaited<ReturnType<typeof startBench>>

/** The options of the command line. */
interface BenchOptions {
  /** The duration of a single measurement, in seconds. */
  seconds: number
  /** The names of the endpoints that the section `endpoints` measures; empty for all of them. */
  endpoints: string[]
}

/** Starts the load generator and an empty PostgreSQL. */
export async function startBench({ seconds, endpoints }: BenchOptions) {
  const folder = await mkdtemp(join(tmpdir(), 'llavero-bench-'))
  const database = await startPostgres({ folder: join(folder, 'postgres') })
  const generator = startGenerator()
  const sql = openDatabase(database.url)

  return {
    seconds,
    endpoints,
    /** The process id of PostgreSQL's postmaster. */
    postgresPid: database.pid,
    /** Makes a database, empty or as a copy of `template`, and returns its address. */
    createDatabase: async (name: string, template = 'template0') => {
      await sql.unsafe(`create database ${name} template ${template}`)
      const url = new URL(database.url)
      url.pathname = `/${name}`
      return url.href
    },
    dropDatabase: async (name: string) => {
      await sql.unsafe(`drop database ${name} with (force)`)
    },
    generator,
    /** Starts the service or a reference with these environment variables and SECRETS. */
    startServer: (file: string, env: Record<string, string>) =>
      startServer(file, { ...SECRETS, ...env }, folder),
    stop: async () => {
      await generator.stop()
      await sql.end()
      await database.stop()
      await rm(database.folder, { recursive: true, force: true })
      await rm(folder, { recursive: true, force: true })
    },
  }
}
