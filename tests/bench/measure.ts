import { readdirSync, readFileSync } from 'node:fs'

/** Several measurements of one thing. */
export interface Spread {
  median: number
  min: number
  max: number
}

export function spread(values: number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (index: number) => sorted[index] ?? Number.NaN
  const last = sorted.length - 1
  const median = (at(Math.floor(last / 2)) + at(Math.ceil(last / 2))) / 2
  return { median, min: at(0), max: at(last) }
}

/** The value that 99 of 100 do not exceed. */
export function p99(values: number[]) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN
}

/**
 * Measures each way once a round, A B C A B C …, so that whatever the machine does besides meets
 * all of them. Gives the results of each way.
 */
export async function alternate<Name extends string, T>(
  rounds: number,
  names: readonly Name[],
  measure: (name: Name) => Promise<T>,
): Promise<Record<Name, T[]>> {
  const results = Object.fromEntries(names.map((name) => [name, [] as T[]])) as Record<Name, T[]>
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) results[name].push(await measure(name))
  }
  return results
}

/** Milliseconds of a tick in /proc/PID/stat, the same on every Linux. */
const TICK = 10

/** CPU time that a process has used so far, in milliseconds; NaN where there is no /proc. */
export const cpuMs = (pid: number) => readStat(pid)?.own ?? Number.NaN

/** The same of a PostgreSQL server: its first process and those it started, ended ones included. */
export function databaseCpuMs(postmaster: number) {
  const first = readStat(postmaster)
  if (!first) return Number.NaN
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readStat(Number(name)))
    .filter((stat) => stat?.parent === postmaster)
  return children.reduce((sum, stat) => sum + (stat?.own ?? 0), first.own + first.ended)
}

function readStat(pid: number) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name, in parentheses, may hold anything; the state follows it.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = (from: number) => (Number(fields[from]) + Number(fields[from + 1])) * TICK
    return { parent: Number(fields[1]), own: ticks(11), ended: ticks(13) }
  } catch {
    return undefined
  }
}

/** Resident memory of a process in MB; NaN where there is no /proc. */
export function residentMb(pid: number) {
  try {
    const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return (Number(kib) * 1024) / 1e6
  } catch {
    return Number.NaN
  }
}
