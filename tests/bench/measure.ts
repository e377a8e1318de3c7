import { readdirSync, readFileSync } from 'node:fs'

/** Returns the 99th percentile. */
export function p99(values: number[]) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN
}

/**
 * Returns how much memory of a process is resident, or was at most (VmHWM), in MB. Returns NaN
 * without /proc.
 */
export function residentMb(pid: number, field: 'VmRSS' | 'VmHWM' = 'VmRSS') {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const kib = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]
    return (Number(kib) * 1024) / 1e6
  } catch {
    return Number.NaN
  }
}

/** The unit of the times in /proc/PID/stat: 100 ticks a second on every Linux. */
const TICKS = 100

/**
 * Returns the processor time of a process and its children, ended ones included, in seconds, or NaN
 * without /proc.
 */
export function cpuSeconds(pid: number) {
  const stat = readStat(pid)
  if (!stat) return Number.NaN
  const living = childrenOf(pid).reduce((sum, child) => sum + (readStat(child)?.own ?? 0), 0)
  return (stat.own + stat.ended + living) / TICKS
}

/** Returns the ids of a process's children. */
export const childrenOf = (pid: number) =>
  readdirSync('/proc')
    .map(Number)
    .filter((child) => child > 0 && readStat(child)?.parent === pid)

/**
 * Returns the state, the parent and the times of a process, or undefined when there is no such
 * process.
 */
export function readStat(pid: number) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The program's name stands in parentheses and may contain spaces.
    const [state, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const [parent, ...numbers] = fields.map(Number)
    const [utime = 0, stime = 0, cutime = 0, cstime = 0] = numbers.slice(9)
    return { state, parent, own: utime + stime, ended: cutime + cstime }
  } catch {
    return undefined
  }
}
