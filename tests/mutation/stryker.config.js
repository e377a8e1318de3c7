/**
 * `npm run test:mutation`, see README.md here.
 * @type {import('@stryker-mutator/api/core').PartialStrykerOptions}
 */
export default {
  testRunner: 'vitest',
  vitest: { configFile: 'tests/mutation/vitest.config.ts', related: true },
  mutate: [
    'src/**/*.ts',
    // Stand-ins for development and tests: no part of the service.
    '!src/dev/**',
    // The process around the service. Its tests start it as a child, where no mutant is switched on;
    // the same holds for the thread of auth/password-worker.js, which is no TypeScript.
    '!src/server.ts',
    '!src/serve.ts',
    '!src/drain.ts',
  ],
  coverageAnalysis: 'perTest',
  concurrency: 2,
  // What hangs is ended by vitest's own limits first, see vitest.config.ts.
  timeoutMS: 20_000,
  timeoutFactor: 2,
  // Nothing type-checks the mutants; and without a compiler's API in TypeScript 7 nothing can
  // rewrite tsconfig.json for them either, which is why its name is one that is not there.
  disableTypeChecks: false,
  tsconfigFile: 'none.json',
  tempDirName: '.stryker-tmp',
  reporters: ['clear-text', 'progress-append-only', 'json'],
  clearTextReporter: { logTests: false, reportTests: false },
  jsonReporter: { fileName: 'reports/mutation.json' },
  thresholds: { high: 95, low: 85, break: 85 },
}
