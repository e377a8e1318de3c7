// When this module is preloaded, each request of the service looks up its session in a statement of
// its own: it replaces the library that lets concurrent look-ups share a statement.
import { register } from 'node:module'

const REPLACED = import.meta.resolve('dataloader')

const SOURCE = `
  export default class {
    constructor(find) {
      this.find = find
    }
    async load(lookup) {
      const [found] = await this.find([lookup])
      return found
    }
  }
`

const HOOKS = `
  export async function load(url, context, nextLoad) {
    if (url !== ${JSON.stringify(REPLACED)}) return nextLoad(url, context)
    return { format: 'module', shortCircuit: true, source: ${JSON.stringify(SOURCE)} }
  }
`

register(`data:text/javascript,${encodeURIComponent(HOOKS)}`)
