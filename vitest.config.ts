import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['tests/*.test.ts'],
    globalSetup: 'tests/postgres.ts',
    setupFiles: 'tests/setup.ts',
    // By itself it leaves one core to others: on two, one file at a time.
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 5000 } },
  },
})
