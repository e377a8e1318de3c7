// Preloaded into the service, this makes each request look up its session in a statement of its own:
// the way without the shared statements of src/auth/sesiones.ts.
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
