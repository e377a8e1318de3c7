import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['tests/*.test.ts'],
    globalSetup: 'tests/postgres.ts',
    setupFiles: 'tests/setup.ts',
    // By itself it leaves one core to others: on two, one file at a time.
    maxWorkers: '100%',
    // The service hashes passwords in threads of low priority. On a busy machine one takes 2 s.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 5000 } },
  },
})
