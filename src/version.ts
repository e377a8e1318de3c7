import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** The version of this release, from package.json. */
export const VERSION: string = require('../package.json').version
