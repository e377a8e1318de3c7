// When this module is preloaded, each request of the service looks up its session in a statement of
// its own: it replaces src/database/batch.ts, where concurrent look-ups share a statement.
import { accessSync } from 'node:fs'
import { register } from 'node:module'

const REPLACED = new URL('../../../dist/database/batch.js', import.meta.url)

// A hook for a file that no longer exists would replace nothing.
accessSync(REPLACED)

const SOURCE = `
  export function batchLookups(find) {
    return async (lookup) => {
      const [found] = await find([lookup])
      return found
    }
  }
`

const HOOKS = `
  export async function load(url, context, nextLoad) {
    if (url !== ${JSON.stringify(REPLACED.href)}) return nextLoad(url, context)
    return { format: 'module', shortCircuit: true, source: ${JSON.stringify(SOURCE)} }
  }
`

register(`data:text/javascript,${encodeURIComponent(HOOKS)}`)
