import { setTimeout as sleep } from 'node:timers/promises'

/** How many turns of the event loop, and how long each lasts at least, in milliseconds. */
const TURNS = 10
const TURN_MS = 10

/**
 * Waits until this process has handled the network events that are due. A single timer may fire before
 * them on a busy machine; each of several timers in a row leaves the event loop a turn for them.
 */
export async function handleEvents() {
  for (let turn = 0; turn < TURNS; turn += 1) await sleep(TURN_MS)
}
