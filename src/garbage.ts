import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How long nothing may have happened before the garbage is collected, in milliseconds. */
const QUIET = 1000

/** Asks for as much as can be had, from Node 22 on; before, it collects little. */
const ALL = { type: 'major', execution: 'sync', flavor: 'last-resort' }

/** What leaves much garbage: `collect` when that is over, for now; `keep` when it begins again. */
export interface Garbage {
  collect(): void
  keep(): void
}

/**
 * Has the garbage collected once, a second after the last call of `collect`, unless `keep` has been
 * called since. The engine itself lets hundreds of MB lie for as long as there is nothing to do.
 */
export function collectWhenQuiet(): Garbage {
  setFlagsFromString('--expose-gc')
  const gc: (options?: typeof ALL) => void = runInNewContext('gc')
  let timer: NodeJS.Timeout | undefined
  // Before Node 22 the second collection gives back the pages that the first has emptied.
  function collectAll() {
    gc()
    gc(ALL)
    gc()
  }
  return {
    collect: () => {
      clearTimeout(timer)
      timer = setTimeout(collectAll, QUIET).unref()
    },
    keep: () => clearTimeout(timer),
  }
}
