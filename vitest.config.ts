import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['tests/*.test.ts'],
    globalSetup: 'tests/postgres.ts',
    setupFiles: 'tests/setup.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    coverage: { include: ['src/**'], exclude: ['src/dev/main.ts'], reporter: ['text'] },
  },
})
