import { readFileSync } from 'node:fs'

const PACKAGE = new URL('../package.json', import.meta.url)

const text = readFileSync(PACKAGE, 'utf8')

/** The version of this release, from package.json. */
export const VERSION: string = JSON.parse(text).version
