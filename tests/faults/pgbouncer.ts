import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject, onTestFinished } from 'vitest'
import { freePort } from '../../src/dev/postgres.js'
import { databaseUrl } from '../postgres.js'
import { installed, run } from './program.js'

/**
 * Starts a PgBouncer in front of the tests' PostgreSQL, with `poolSize` connections to each
 * database and this pool mode. `url` is its address. It ends after the test.
 */
export async function startPgBouncer(
  poolSize: number,
  mode: 'transaction' | 'session' = 'transaction',
) {
  const folder = await mkdtemp(join(tmpdir(), 'llavero-pgbouncer-'))
  const port = await freePort()
  const { hostname, port: serverPort, username, password } = new URL(inject('serverUrl'))
  const file = join(folder, 'pgbouncer.ini')
  const login = `user=${decodeURIComponent(username)} password=${decodeURIComponent(password)}`
  const lines = [
    '[databases]',
    `* = host=${hostname} port=${serverPort} ${login}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    `pool_mode = ${mode}`,
    `default_pool_size = ${poolSize}`,
    'max_client_conn = 500',
    // PgBouncer refuses to run as root.
    ...(process.getuid?.() === 0 ? ['user = nobody'] : []),
  ]
  await writeFile(file, lines.join('\n'), { mode: 0o600 })
  const { readLog, stop } = await run(installed('pgbouncer') ?? '', [file], { port, cwd: folder })
  onTestFinished(async () => {
    await stop()
    await rm(folder, { recursive: true })
  })
  return { url: `postgres://llavero:clave-de-nadie@127.0.0.1:${port}/`, readLog }
}

/** Returns the URL of a database through a PgBouncer. */
export const through = (pooler: { url: string }, database: string) =>
  databaseUrl(pooler.url, new URL(database).pathname.slice(1))
