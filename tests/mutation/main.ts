import { fileURLToPath } from 'node:url'
import { Stryker } from '@stryker-mutator/core'
import { startServer } from '../postgres.js'

/**
 * `npm run test:mutation`, or with `-- src/fields.ts …` for single files: one PostgreSQL for the
 * whole run, since the processes that run the tests come and go.
 */
const files = process.argv.slice(2)
const server = await startServer()
process.env.TEST_DATABASE_URL = server.url
try {
  await new Stryker({
    configFile: fileURLToPath(new URL('stryker.config.js', import.meta.url)),
    ...(files.length > 0 && { mutate: files }),
  }).runMutationTest()
} finally {
  await server.stop()
}
