import { defineConfig } from 'vitest/config'

/** `npm run test:faults`: against real processes, one file after the other. */
export default defineConfig({
  test: {
    include: ['tests/faults/*.test.ts'],
    globalSetup: 'tests/postgres.ts',
    setupFiles: 'tests/setup.ts',
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 5000 } },
  },
})
