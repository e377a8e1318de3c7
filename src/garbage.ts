import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How long it must have been quiet before the garbage is collected, in milliseconds. */
const QUIET = 1000

/** Asks for as much as can be had, from Node 22 on; before, it collects little. */
const ALL = { type: 'major', execution: 'sync', flavor: 'last-resort' }

/**
 * Has the garbage collected once enough of it has been made, by any measure of the caller's, and it
 * is over: a second after `rest` without another `make`. The engine itself lets hundreds of MB lie
 * for as long as there is nothing to do.
 */
export function collectWhenQuiet(enough: number) {
  setFlagsFromString('--expose-gc')
  const gc: (options?: typeof ALL) => void = runInNewContext('gc')
  let made = 0
  let timer: NodeJS.Timeout | undefined

  // Before Node 22 the second collection gives back the pages that the first has emptied.
  function collectAll() {
    made = 0
    gc()
    gc(ALL)
    gc()
  }

  return {
    make: (amount: number) => {
      made += amount
      clearTimeout(timer)
    },
    rest: () => {
      clearTimeout(timer)
      if (made >= enough) timer = setTimeout(collectAll, QUIET).unref()
    },
  }
}
