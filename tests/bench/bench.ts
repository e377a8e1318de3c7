import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startCaptcha } from '../../src/dev/captcha.js'
import { startPostgres } from '../../src/dev/postgres.js'
import { SECRETS } from '../service.js'
import { JWT_SECRET, openDatabase, PERFILES, readData, seed } from './data.js'
import { type Server, startGenerator, startServer } from './processes.js'

/** The resources that all sections share. */
export type Bench = Awaited<ReturnType<typeof startBench>>

/** The options of the command line. */
interface BenchOptions {
  /** The duration of a single measurement, in seconds. */
  seconds: number
  /** The names of the endpoints that the section `endpoints` measures; empty for all of them. */
  endpoints: string[]
}

/** Starts the captcha stand-in, the load generator, and a PostgreSQL that contains the data. */
export async function startBench({ seconds, endpoints }: BenchOptions) {
  const folder = await mkdtemp(join(tmpdir(), 'llavero-bench-'))
  const database = await startPostgres({ folder: join(folder, 'postgres') })
  const captcha = await startCaptcha()
  const generator = startGenerator()
  const sql = openDatabase(database.url)
  const servers = new Set<Server>()

  /** Makes a database, empty or as a copy of `template`, and returns its address. */
  async function createDatabase(name: string, template = 'template0') {
    await sql.unsafe(`create database ${name} template ${template}`)
    const url = new URL(database.url)
    url.pathname = `/${name}`
    return url.href
  }

  async function dropDatabase(name: string) {
    await sql.unsafe(`drop database ${name} with (force)`)
  }

  const url = await createDatabase('llavero')
  await seed(url, PERFILES)
  const env = {
    ...SECRETS,
    DATABASE_URL: url,
    JWT_SECRET,
    CAPTCHA_VERIFY_URL: captcha.url,
    LOGIN_RATE_LIMIT: '0',
  }

  return {
    seconds,
    endpoints,
    /** The process id of PostgreSQL's postmaster. */
    postgresPid: database.pid,
    createDatabase,
    dropDatabase,
    data: await readData(url),
    generator,
    /** The environment of the service and the references, with the seeded database. */
    env,
    /** Starts the service or a reference; `others` adds environment variables or overrides some. */
    startServer: async (file: string, others: Record<string, string> = {}) => {
      const started = await startServer(file, { ...env, ...others }, folder)
      servers.add(started)
      return started
    },
    stop: async () => {
      await Promise.all([...servers].map((each) => each.stop()))
      await generator.stop()
      await captcha.close()
      await sql.end()
      await database.stop()
      await rm(database.folder, { recursive: true, force: true })
      await rm(folder, { recursive: true, force: true })
    },
  }
}
