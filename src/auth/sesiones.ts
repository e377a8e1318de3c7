import { setImmediate } from 'node:timers/promises'
import pLimit from 'p-limit'
import { DatabaseTimeout } from '../database/sql.js'
import type { Lookup, Sesion } from './schemas.js'

/** Finds the sessions of several look-ups in one statement, each at the place of its look-up. */
export type FindSesiones = (lookups: Lookup[]) => Promise<(Sesion | undefined)[]>

/** Finds the session of one request; undefined where its token is not valid any more. */
export type FindSesion = (lookup: Lookup) => Promise<Sesion | undefined>

/** How many statements may be in flight; the look-ups that come in meanwhile share the next one. */
const MAX_STATEMENTS = 2
/** The most time for a look-up, in milliseconds: as much as any statement has. */
const LOOKUP_TIMEOUT = 4500

/** A statement that has not begun yet. */
interface Batch {
  /** What it will ask, by the text of the look-up: what several requests ask is asked once. */
  lookups: Map<string, Lookup>
  /** Its answers, by the same text. */
  sesiones: Promise<Map<string, Sesion | undefined>>
}

/**
 * Returns a function that finds the session of one request and shares its statements among all
 * requests.
 *
 * Every request but a login needs this look-up, so it must be cheap. It can't come from a cache, as
 * a right that has been revoked must not be served: the statement of a look-up begins after its
 * request has come in.
 */
export function shareLookups(find: FindSesiones): FindSesion {
  const limit = pLimit(MAX_STATEMENTS)
  let next: Batch | undefined

  function nextBatch(): Batch {
    const lookups = new Map<string, Lookup>()
    const sesiones = limit(async () => {
      // Requests that the event loop has at hand already come along.
      await setImmediate()
      next = undefined
      const found = await find([...lookups.values()])
      return new Map([...lookups.keys()].map((text, index) => [text, found[index]]))
    })
    return { lookups, sesiones }
  }

  return async (lookup) => {
    const text = Object.values(lookup).join()
    next ??= nextBatch()
    next.lookups.set(text, lookup)
    const sesiones = await inTime(next.sesiones)
    return sesiones.get(text)
  }
}

/** Throws a DatabaseTimeout after LOOKUP_TIMEOUT: the wait for a statement to begin counts too. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DatabaseTimeout()), LOOKUP_TIMEOUT)
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}
