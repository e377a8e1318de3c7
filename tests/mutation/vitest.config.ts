import { basename, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/**
 * The tests that speak for a source file, the ones that kill most first. A mutant that the others
 * alone would have killed survives here: a run costs minutes less, and the score is at worst too low.
 * The first entry whose path fits counts.
 */
const TESTS: [path: string, tests: string[]][] = [
  ['src/config.ts', ['config']],
  ['src/auth/gather.ts', ['gather', 'mapa']],
  ['src/auth/captcha.ts', ['login']],
  ['src/auth/password.ts', ['login', 'metrics']],
  ['src/auth/routes.ts', ['docs', 'headers', 'administracion', 'login', 'contract']],
  ['src/auth/plugin.ts', ['rotation', 'headers', 'login', 'contract']],
  ['src/auth/queries.ts', ['mapa', 'access', 'login']],
  ['src/auth/', ['docs', 'headers', 'mapa', 'access', 'administracion', 'contract']],
  ['src/fields.ts', ['fields', 'config', 'docs']],
  ['src/decode.ts', ['validation', 'fields']],
  ['src/validation.ts', ['validation', 'docs']],
  ['src/modulo/schemas.ts', ['docs', 'fields', 'modulo']],
  ['src/usuario/schemas.ts', ['docs', 'fields', 'usuario', 'contract']],
  ['src/usuario/imagen.ts', ['imagen', 'usuario', 'contract']],
  ['src/usuario/', ['docs', 'usuario', 'administracion', 'access', 'contract']],
  ['src/perfil/', ['docs', 'perfil', 'administracion', 'contract']],
  ['src/modulo/', ['docs', 'modulo', 'administracion', 'access', 'contract']],
  ['src/permisos/schemas.ts', ['docs', 'permisos', 'valores']],
  ['src/permisos/', ['docs', 'permisos', 'mapa', 'contract']],
  ['src/answered.ts', ['registro', 'aborted']],
  ['src/audit.ts', ['audit', 'registro', 'aborted']],
  ['src/log.ts', ['registro', 'audit', 'aborted', 'login']],
  ['src/docs.ts', ['docs', 'pipeline']],
  ['src/pipeline.ts', ['pipeline']],
  ['src/descriptors.ts', ['descriptors', 'pipeline']],
  ['src/headers.ts', ['headers']],
  ['src/metrics.ts', ['metrics']],
  ['src/pool.ts', ['metrics', 'pool']],
  ['src/connect.ts', ['pool']],
  ['src/hosts.ts', ['pool']],
  ['src/turns.ts', ['pool']],
  ['src/budget.ts', ['budget']],
  ['src/garbage.ts', ['budget']],
  ['src/body.ts', ['cuerpos']],
  ['src/overload.ts', ['overload']],
  ['src/migrate.ts', ['migrate']],
  ['src/health.ts', ['health', 'docs']],
  ['src/failure.ts', ['headers', 'mapa', 'login']],
  ['src/db.ts', ['modulo', 'imagen', 'usuario', 'administracion', 'access', 'pool']],
  ['src/answers.ts', ['docs', 'headers', 'registro', 'cuerpos', 'contract']],
  [
    'src/app.ts',
    ['docs', 'headers', 'registro', 'health', 'close', 'metrics', 'aborted', 'cuerpos', 'imagen'],
  ],
  ['src/', ['docs', 'headers', 'contract', 'administracion', 'registro']],
]

class ForTheMutant extends BaseSequencer {
  override async sort(specs: TestSpecification[]) {
    const mutated = (this.ctx.config.related ?? []).map((path) =>
      relative(this.ctx.config.root, path),
    )
    const wanted = mutated.flatMap(
      (path) => TESTS.find(([start]) => path.startsWith(start))?.[1] ?? [],
    )
    const rank = ({ moduleId }: TestSpecification) => wanted.indexOf(basename(moduleId, '.test.ts'))
    return specs.filter((spec) => rank(spec) >= 0).sort((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  root: ROOT,
  test: {
    include: ['tests/*.test.ts'],
    globalSetup: 'tests/postgres.ts',
    setupFiles: 'tests/setup.ts',
    runner: fileURLToPath(new URL('runner.ts', import.meta.url)),
    sequence: { sequencer: ForTheMutant },
    // One thread for all files of one mutant; the next mutant gets another.
    isolate: false,
    // A mutant that hangs costs this, and not Stryker's own limit, which is that of all tests.
    testTimeout: 15_000,
    hookTimeout: 30_000,
  },
})
