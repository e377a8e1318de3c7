import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How long it must be quiet before the garbage is collected, in milliseconds. */
const QUIET = 1000
/**
 * The share of that time in which the event loop may work: others would wait for the collection.
 * Where it works more, they wait for one in so many milliseconds.
 */
const QUIET_UTILIZATION = 0.1
const BUSY_INTERVAL = 10_000

setFlagsFromString('--expose-gc')
const gc: (options?: typeof ALL) => void = runInNewContext('gc')

/** Asks for as much as can be had, from Node 22 on; before, it collects little. */
const ALL = { type: 'major', execution: 'sync', flavor: 'last-resort' }

/**
 * Has the garbage collected once enough of it has been made, by any measure of the caller's, and it
 * is over: after the first quiet second since `rest`, unless there is another `make`; on a busy
 * service not more often than every BUSY_INTERVAL. The engine itself lets hundreds of MB lie for as
 * long as there is nothing to do.
 */
export function collectWhenQuiet(enough: number) {
  let made = 0
  let collectedAt = -BUSY_INTERVAL
  let timer: NodeJS.Timeout | undefined

  function waitForQuiet() {
    clearTimeout(timer)
    const before = performance.eventLoopUtilization()
    timer = setTimeout(() => {
      const { utilization } = performance.eventLoopUtilization(before)
      const isTooSoon = performance.now() - collectedAt < BUSY_INTERVAL
      if (utilization > QUIET_UTILIZATION && isTooSoon) waitForQuiet()
      else collectAll()
    }, QUIET).unref()
  }

  // Before Node 22 the second collection gives back the pages that the first has emptied.
  function collectAll() {
    made = 0
    collectedAt = performance.now()
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
      if (made >= enough) waitForQuiet()
    },
  }
}
