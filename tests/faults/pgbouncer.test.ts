import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest'
import { startCaptcha } from '../../src/dev/captcha.js'
import { cloneDatabase } from '../app.js'
import { COMPILED, killAll, start } from '../service.js'
import { ADMIN, login, send } from './client.js'
import { startPgBouncer, through } from './pgbouncer.js'
import { installed } from './program.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs')
const isMissing = !installed('pgbouncer')
const unless = isMissing ? ' (skipped: pgbouncer is not installed)' : ''

/** The contract's own test, and those of the matrix and of the administrator flag. */
const FILES = ['contract', 'matriz', 'perfil']

interface Report {
  testResults: {
    name: string
    status: string
    message: string
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[]
  }[]
}

/** Runs test files with all their databases behind the pooler; gives vitest's JSON report. */
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

describe.skipIf(isMissing)(`behind a PgBouncer with transaction pooling${unless}`, () => {
  it('the contract holds', async () => {
    const pooler = await startPgBouncer(inject('serverUrl'), 10)
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

  describe('with two connections for three replicas', () => {
    let captcha: Awaited<ReturnType<typeof startCaptcha>>
    let database: string
    let sql: postgres.Sql

    beforeAll(async () => {
      captcha = await startCaptcha()
      database = await cloneDatabase()
      sql = postgres(database, { max: 1, onnotice: () => {} })
      await sql`drop schema public cascade`
      await sql`create schema public`
      return async () => {
        await sql.end()
        await captcha.close()
      }
    })

    /** Three replicas that start at once, behind a pooler of their own. */
    async function startReplicas() {
      const pooler = await startPgBouncer(inject('serverUrl'), 2)
      onTestFinished(killAll)
      const env = {
        ...ADMIN,
        DATABASE_URL: through(pooler, database),
        DATABASE_PREPARE: 'false',
        CAPTCHA_VERIFY_URL: captcha.url,
        LOGIN_RATE_LIMIT: '0',
      }
      return Promise.all(Array.from({ length: 3 }, () => start(env, COMPILED)))
    }

    it('they make the schema and the administrator once', async () => {
      const replicas = await startReplicas()
      const ready = await Promise.all(
        replicas.map(({ address }) => send('GET', `${address}/health/ready`)),
      )
      expect(ready).toEqual(Array(3).fill({ status: 200, body: { status: 'ok' } }))
      const tokens = await Promise.all(replicas.map(({ address }) => login(address)))
      expect(tokens).toEqual(Array(3).fill(expect.stringMatching(/^ey/)))
      expect(await sql`select "strNombreUsuario" as nombre from usuario`).toEqual([
        { nombre: ADMIN.ADMIN_USERNAME },
      ])
    })

    it('replaces and toggles at once leave each profile one whole matrix', async () => {
      const replicas = await startReplicas()
      await sql`
        insert into perfil ("strNombrePerfil") select 'P' || n from generate_series(1, 2) n
      `
      await sql`
        insert into modulo ("strNombreModulo") select 'M' || n from generate_series(1, 36) n
      `
      const token = await login(replicas[0]?.address ?? '')
      const modulos = Array.from({ length: 40 }, (_, index) => index + 1)
      // Twenty of forty modules, the first of them another one in each.
      const matriz = (n: number) =>
        modulos.slice(n % 20, (n % 20) + 20).map((idModulo) => ({ idModulo, bitConsulta: true }))
      const ids = (rows: { idModulo: number }[]) => rows.map(({ idModulo }) => idModulo)

      async function write(n: number) {
        const url = replicas[n % 3]?.address
        const replace = { idPerfil: 2, permisos: matriz(n) }
        const toggle = { strNombrePerfil: 'P2', bitAdministrador: n % 2 === 0 }
        return Promise.all([
          send('POST', `${url}/api/permisos/guardar-matriz`, { token, body: replace }),
          send('PUT', `${url}/api/perfil/3`, { token, body: toggle }),
          send('GET', `${url}/api/permisos/por-perfil/2`, { token }),
          send('GET', `${url}/api/permisos/por-perfil/3`, { token }),
        ])
      }
      const rounds = await Promise.all(Array.from({ length: 30 }, (_, n) => write(n)))

      const answers = rounds.flat()
      expect(answers.filter(({ status, body }) => status !== 200 || !body.success)).toEqual([])
      const matrices = [[], ...Array.from({ length: 20 }, (_, n) => ids(matriz(n)))]
      const sorted = (numbers: number[]) => numbers.toSorted((a, b) => a - b)
      for (const [, , replaced, toggled] of rounds) {
        expect(matrices).toContainEqual(sorted(ids(replaced.body.data)))
        expect([[], modulos]).toContainEqual(sorted(ids(toggled.body.data)))
      }
      const stored = await sql<{ idModulo: number }[]>`
        select "idModulo" from permisos_perfil where "idPerfil" = 2 order by "idModulo"
      `
      expect(matrices.slice(1)).toContainEqual(ids([...stored]))
      const [consistent] = await sql`
        select "bitAdministrador" as flag, (select count(*)::int from permisos_perfil where "idPerfil" = 3)
        from perfil where id = 3
      `
      expect([
        { flag: true, count: 40 },
        { flag: false, count: 0 },
      ]).toContainEqual(consistent)
    })
  })
})
