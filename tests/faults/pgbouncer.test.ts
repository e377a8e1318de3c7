import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { startCaptcha } from '../../src/dev/captcha.js'
import { READY } from '../answers.js'
import { ADMIN, ADMIN_ENV, cloneDatabase } from '../app.js'
import { killAll, launch, SECRETS, start } from '../service.js'
import { login, send } from './client.js'
import { startPgBouncer, through } from './pgbouncer.js'
import { installed } from './program.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs')
const isMissing = !installed('pgbouncer')
const skipNote = isMissing ? ' (skipped: pgbouncer is not installed)' : ''

/** The test files to run: the contract, the matrix and the administrator flag. */
const FILES = ['contract', 'matriz', 'perfil']

interface Report {
  testResults: {
    name: string
    status: string
    message: string
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[]
  }[]
}

/** Runs test files whose services connect through the pooler; returns vitest's JSON report. */
async function runTests(files: string[], pooler: { url: string }): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), 'llavero-report-'))
  const report = join(folder, 'report.json')
  const env = {
    ...process.env,
    TEST_DATABASE_URL: inject('serverUrl'),
    TEST_POOLER_URL: pooler.url,
  }
  const args = [VITEST, 'run', '--reporter=json', `--outputFile=${report}`, ...files]
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: 'ignore' })
  onTestFinished(async () => {
    child.kill()
    await rm(folder, { recursive: true })
  })
  await once(child, 'exit')
  return JSON.parse(await readFile(report, 'utf8'))
}

describe.skipIf(isMissing)(`behind a PgBouncer with transaction pooling${skipNote}`, () => {
  it('the tests of the contract, the matrix and the administrator flag pass', async () => {
    const pooler = await startPgBouncer(10)
    const files = FILES.map((name) => `tests/${name}.test.ts`)
    const { testResults } = await runTests(files, pooler)
    const failed = testResults.flatMap(({ name, status, message, assertionResults }) => [
      ...(status === 'passed' ? [] : [{ name, message }]),
      ...assertionResults
        .filter((result) => result.status === 'failed')
        .map(({ fullName, failureMessages }) => ({ name: fullName, message: failureMessages[0] })),
    ])
    expect(failed).toEqual([])
    expect(testResults).toHaveLength(files.length)
    expect(pooler.readLog()).toMatch(/ db=prueba_/)
  })

  it('three replicas over two connections create the schema and the administrator once', async () => {
    const captcha = await startCaptcha()
    const database = await cloneDatabase('template0')
    const sql = postgres(database, { max: 1, onnotice: () => {} })
    onTestFinished(async () => {
      await killAll()
      await sql.end()
      await captcha.close()
    })
    const pooler = await startPgBouncer(2)
    const env = {
      ...ADMIN_ENV,
      DATABASE_URL: through(pooler, database),
      DATABASE_PREPARE: 'false',
      CAPTCHA_VERIFY_URL: captcha.url,
      LOGIN_RATE_LIMIT: '0',
    }
    const replicas = await Promise.all(Array.from({ length: 3 }, () => start(env)))
    const ready = await Promise.all(
      replicas.map(({ address }) => send('GET', `${address}/health/ready`)),
    )
    expect(ready).toEqual(Array(3).fill(READY))
    const tokens = await Promise.all(replicas.map(({ address }) => login(address)))
    expect(tokens).toEqual(Array(3).fill(expect.stringMatching(/^ey/)))
    expect(await sql`select "strNombreUsuario" as nombre from usuario`).toEqual([
      { nombre: ADMIN.strNombreUsuario },
    ])
  })
})

describe.skipIf(isMissing)(`behind a PgBouncer with session pooling${skipNote}`, () => {
  it('a replica does not start without DATABASE_PREPARE=false, because PgBouncer refuses the settings that it would send', async () => {
    const database = await cloneDatabase()
    onTestFinished(killAll)
    const pooler = await startPgBouncer(20, 'session')
    const env = { ...SECRETS, ...ADMIN_ENV, PORT: '0', DATABASE_URL: through(pooler, database) }

    const { stderr } = await launch(env).ended
    expect(stderr).toContain('unsupported startup parameter')

    const { address } = await start({ ...env, DATABASE_PREPARE: 'false' })
    const ready = await send('GET', `${address}/health/ready`)
    expect(ready).toEqual(READY)
  })
})
