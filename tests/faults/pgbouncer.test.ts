import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { READY } from '../answers.js'
import { ADMIN, ADMIN_ENV, cloneDatabase } from '../app.js'
import { connectTo } from '../connect.js'
import { launch, SECRETS } from '../service.js'
import { startPgBouncer, through } from './pgbouncer.js'
import { installed } from './program.js'
import { startService } from './service.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs')
const isMissing = !installed('pgbouncer')
const skipNote = isMissing ? ' (skipped: pgbouncer is not installed)' : ''

/** The test files to run: the contract, the matrix and the administrator flag. */
const FILES = ['contract', 'matriz', 'perfil']

/**
 * Runs test files whose services connect through the pooler; returns the exit code of vitest and
 * what it prints.
 */
async function runTests(files: string[], pooler: { url: string }) {
  const env = {
    ...process.env,
    NO_COLOR: '1',
    TEST_DATABASE_URL: inject('serverUrl'),
    TEST_POOLER_URL: pooler.url,
  }
  const child = spawn(process.execPath, [VITEST, 'run', ...files], { cwd: ROOT, env })
  onTestFinished(() => void child.kill())
  const [[code], printed, errors] = await Promise.all([
    once(child, 'exit'),
    text(child.stdout),
    text(child.stderr),
  ])
  return { code, printed: printed + errors }
}

describe.skipIf(isMissing)(`behind a PgBouncer with transaction pooling${skipNote}`, () => {
  it('the tests of the contract, the matrix and the administrator flag pass', async () => {
    const pooler = await startPgBouncer(10)
    const files = FILES.map((name) => `tests/${name}.test.ts`)
    const { code, printed } = await runTests(files, pooler)
    expect(code, printed).toBe(0)
    expect(printed).toContain(`Test Files  ${FILES.length} passed (${FILES.length})`)
    expect(pooler.readLog()).toMatch(/ db=prueba_/)
  })

  it('three replicas over two connections create the schema and the administrator once', async () => {
    const database = await cloneDatabase('template0')
    const sql = connectTo(database)
    const pooler = await startPgBouncer(2)
    const env = { DATABASE_URL: through(pooler, database), DATABASE_PREPARE: 'false' }
    const replicas = await Promise.all(Array.from({ length: 3 }, () => startService(env)))
    const ready = await Promise.all(replicas.map(({ call }) => call('GET', '/health/ready')))
    expect(ready).toEqual(Array(3).fill(READY))
    expect(await sql`select "strNombreUsuario" as nombre from usuario`).toEqual([
      { nombre: ADMIN.strNombreUsuario },
    ])
  })
})

describe.skipIf(isMissing)(`behind a PgBouncer with session pooling${skipNote}`, () => {
  it('a replica does not start without DATABASE_PREPARE=false, because PgBouncer refuses the settings that it would send', async () => {
    const database = await cloneDatabase()
    const pooler = await startPgBouncer(20, 'session')
    const DATABASE_URL = through(pooler, database)

    const { stderr } = await launch({ ...SECRETS, ...ADMIN_ENV, PORT: '0', DATABASE_URL }).ended
    expect(stderr).toContain('unsupported startup parameter')

    const { call } = await startService({ DATABASE_URL, DATABASE_PREPARE: 'false' })
    expect(await call('GET', '/health/ready')).toEqual(READY)
  })
})
