import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['tests/*.test.ts'],
    globalSetup: 'tests/postgres.ts',
    setupFiles: 'tests/setup.ts',
    // By default Vitest leaves one core free, so on two cores it would run one file at a time.
    maxWorkers: '100%',
    // Each test file has a database and an application of its own. So the files of a worker can share the
    // modules, and load them once.
    isolate: false,
    // The service hashes passwords in threads of low priority, so on a busy machine one hash takes
    // 2 s.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 5000 } },
  },
})
