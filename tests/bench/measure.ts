import { readdirSync, readFileSync } from 'node:fs'

/** Returns the 99th percentile. */
export function p99(values: number[]) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN
}

/** Returns the resident memory of a process in MB, or NaN without /proc. */
export function residentMb(pid: number) {
  try {
    const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
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
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readStat(Number(name)))
    .filter((child) => child?.parent === pid)
  const living = children.reduce((sum, child) => sum + (child?.own ?? 0), 0)
  return (stat.own + stat.ended + living) / TICKS
}

function readStat(pid: number) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The program's name stands in parentheses and may contain spaces.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11)
    return { parent: fields[1], own: utime + stime, ended: cutime + cstime }
  } catch {
    return undefined
  }
}
