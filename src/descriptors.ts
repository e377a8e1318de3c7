import { readFileSync } from 'node:fs'

/** Descriptors for everything but clients: the database, files, threads. */
const RESERVE = 200

/**
 * How many connections of clients the process can have before it runs out of descriptors, where
 * each may need another one for the captcha service or the image host; undefined where `limitsFile`
 * does not say. Without descriptors nothing works any more, not even what measures the load.
 */
export function maxConnections(limitsFile = '/proc/self/limits'): number | undefined {
  try {
    const limits = readFileSync(limitsFile, 'utf8')
    const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? []
    return soft === undefined ? undefined : Math.max(1, Math.floor((Number(soft) - RESERVE) / 2))
  } catch {
    return undefined
  }
}
