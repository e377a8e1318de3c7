// This file is JavaScript, so that a worker thread can load it from the sources and in the tests as
// well as in the build.
import { setPriority } from 'node:os'
import { compareSync, hashSync } from 'bcryptjs'

/** The cost of a new hash, as an exponent of 2 (contract, section 8). */
const ROUNDS = 10

// On Linux this lowers the priority of this thread alone. So the thread of the event loop, which
// serves all other requests, gets the processor first. On other systems it may lower the priority
// of the whole process.
try {
  setPriority(10)
} catch {
  // Without the lower priority, hashing still works.
}

/**
 * Returns whether `hash` is a hash of the password `plain`. Without `hash`, returns a new hash of
 * `plain`.
 * @typedef {{ plain: string, hash?: string }} HashTask
 * @param {HashTask} task
 */
export default function work({ plain, hash }) {
  if (hash === undefined) return hashSync(plain, ROUNDS)
  return compareSync(plain, hash)
}
