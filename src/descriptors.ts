import { readFileSync } from 'node:fs'

/** Descriptors for everything but clients: the database, files, threads. */
const RESERVE = 200

/**
 * How many connections of clients the process can have before it runs out of descriptors, where
 * each may need another one for the captcha service or the image host; undefined where that can't
 * be known. Without descriptors nothing works any more, not even what measures the load.
 */
export function maxConnections(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? []
    return soft === undefined ? undefined : Math.max(1, Math.floor((Number(soft) - RESERVE) / 2))
  } catch {
    return undefined
  }
}
