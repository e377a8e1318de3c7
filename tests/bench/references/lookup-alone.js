// When this module is preloaded, each request of the service looks up its session in a statement of
// its own: it replaces src/database/shared.ts, where concurrent look-ups share a statement.
import { register } from 'node:module'

const SOURCE = `
  export function shareLookups(find) {
    return async (lookup) => {
      const [found] = await find([lookup])
      return found
    }
  }
`

const HOOKS = `
  export async function load(url, context, nextLoad) {
    if (!url.endsWith('/dist/database/shared.js')) return nextLoad(url, context)
    return { format: 'module', shortCircuit: true, source: ${JSON.stringify(SOURCE)} }
  }
`

register(`data:text/javascript,${encodeURIComponent(HOOKS)}`)
