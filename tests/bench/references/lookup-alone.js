// When this module is preloaded, each request of the service looks up its session in a statement of
// its own: it replaces src/auth/sesiones.ts, where concurrent look-ups share a statement.
import { register } from 'node:module'

const SOURCE = `
  export function shareSesiones(find) {
    return async (lookup) => {
      const [sesion] = await find([lookup])
      return sesion
    }
  }
`

const HOOKS = `
  export async function load(url, context, nextLoad) {
    if (!url.endsWith('/dist/auth/sesiones.js')) return nextLoad(url, context)
    return { format: 'module', shortCircuit: true, source: ${JSON.stringify(SOURCE)} }
  }
`

register(`data:text/javascript,${encodeURIComponent(HOOKS)}`)
