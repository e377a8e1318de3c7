import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['tests/*.test.ts'],
    globalSetup: 'tests/postgres.ts',
    setupFiles: 'tests/setup.ts',
    // By default Vitest leaves one core free, so on two cores it would run one file at a time.
    maxWorkers: '100%',
    // The service hashes passwords in threads of low priority, so on a busy machine one hash takes
    // 2 s.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 5000 } },
  },
})
