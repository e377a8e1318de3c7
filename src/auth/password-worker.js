// This file is JavaScript so that a worker thread can load the same file everywhere: from the
// sources, in the tests, and in the build.
import { setPriority } from 'node:os'
import { compareSync, hashSync } from 'bcryptjs'

/** The cost of a new hash, as an exponent of 2 (contract, section 8). */
const ROUNDS = 10

// On Linux this lowers the priority of this thread alone. So the event loop, which serves all other
// requests, gets the processor first.
try {
  setPriority(10)
} catch {
  // Without the lower priority, hashing still works.
}

/**
 * If `hash` is given, returns whether it is a hash of the password `plain`. If not, returns a new
 * hash of `plain`.
 * @typedef {{ plain: string, hash?: string }} HashTask
 * @param {HashTask} task
 */
export default function work({ plain, hash }) {
  return hash === undefined ? hashSync(plain, ROUNDS) : compareSync(plain, hash)
}
