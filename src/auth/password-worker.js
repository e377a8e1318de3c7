// JavaScript, so that the same file is the worker from source, under the tests and when compiled.
import { setPriority } from 'node:os'
import { compareSync, hashSync } from 'bcryptjs'

const ROUNDS = 10

// On Linux this lowers the calling thread alone: other requests come first on a busy machine.
try {
  setPriority(10)
} catch {
  // Where it can't be lowered, hashing works all the same.
}

/**
 * With `hash`, whether it was made of `plain`; without, a new hash of `plain`.
 * @typedef {{ plain: string, hash?: string }} HashTask
 * @param {HashTask} task
 */
export default function work({ plain, hash }) {
  return hash === undefined ? hashSync(plain, ROUNDS) : compareSync(plain, hash)
}
