import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startCaptcha } from '../../src/dev/captcha.js'
import { startPostgres } from '../../src/dev/postgres.js'
import { JWT_SECRET, openDatabase, PERFILES, readData, seed } from './data.js'
import { type Server, startGenerator, startServer } from './processes.js'

/** What all sections share. */
export type Bench = Awaited<ReturnType<typeof startBench>>

export interface Options {
  /** How long a single measurement takes. */
  seconds: number
  /** Whether container images are to be built, for their sizes. */
  images?: boolean
}

/** Starts PostgreSQL with the data, the captcha stand-in and the load generator. */
export async function startBench({ seconds, images }: Options) {
  const folder = await mkdtemp(join(tmpdir(), 'llavero-bench-'))
  const database = await startPostgres({ folder: join(folder, 'postgres') })
  const captcha = await startCaptcha()
  const generator = startGenerator()
  const server = openDatabase(database.url)
  const servers = new Set<Server>()

  /** A new database; gives its address. */
  async function createDatabase(name: string, template = 'template0') {
    await server.unsafe(`create database ${name} template ${template}`)
    const url = new URL(database.url)
    url.pathname = `/${name}`
    return url.href
  }

  const url = await createDatabase('llavero')
  await seed(url, PERFILES)
  const data = await readData(url)
  const mapBody = JSON.stringify(data.mapas[0]?.mapa)
  const [version] = await server`select current_setting('server_version') as version`

  return {
    seconds,
    images,
    folder,
    database: { pid: database.pid, version: String(version?.version), url },
    createDatabase,
    /** A database with the same data, for a section that writes; no server may be running. */
    copyData: (name: string) => createDatabase(name, 'llavero'),
    data,
    generator,
    mapBytes: Buffer.byteLength(mapBody),
    /** Starts the service or a reference, on the seeded database unless `env` names another. */
    startServer: async (file: string, env: Record<string, string> = {}, args: string[] = []) => {
      const common = {
        DATABASE_URL: url,
        JWT_SECRET,
        MAP_BODY: mapBody,
        CAPTCHA_SECRET: 'secreto del sitio',
        CAPTCHA_VERIFY_URL: captcha.url,
        CLOUDINARY_URL: 'cloudinary://clave:secreto@nube',
        LOGIN_RATE_LIMIT: '0',
      }
      const started = await startServer(file, { ...common, ...env }, folder, args)
      servers.add(started)
      return started
    },
    stop: async () => {
      await Promise.all([...servers].map((each) => each.stop()))
      await generator.stop()
      await captcha.close()
      await server.end()
      await database.stop()
      await rm(database.folder, { recursive: true, force: true })
      await rm(folder, { recursive: true, force: true })
    },
  }
}
