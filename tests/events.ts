import { setTimeout as sleep } from 'node:timers/promises'

/** How many turns of the event loop, and how long each lasts at least, in milliseconds. */
const TURNS = 10
const TURN_MS = 10

/**
 * Waits until this process has handled the pending network events. On a busy machine a single timer
 * may fire before they are handled, so several timers give the event loop several turns for them.
 */
export async function letEventsPass() {
  for (let turn = 0; turn < TURNS; turn += 1) await sleep(TURN_MS)
}
