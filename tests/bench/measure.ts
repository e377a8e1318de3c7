import { readdirSync, readFileSync } from 'node:fs'

/** The results of several measurements of one thing. */
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

/** Returns the 99th percentile. */
export function p99(values: number[]) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN
}

/**
 * Measures each name once per round, A B C A B C …, so that other load on the machine affects all
 * alike. Returns the results by name.
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

/** Returns the spread of the ratios of `values` to `others`, round by round. */
export const ratios = (values: number[], others: number[]) =>
  spread(values.map((value, round) => value / (others[round] ?? Number.NaN)))

/** Returns `yes` or `NO`, with which a table shows whether a target is met. */
export const mark = (holds: boolean) => (holds ? 'yes' : 'NO')

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

/** Returns the processor time of a process so far, in seconds, or NaN without /proc. */
export function cpuSeconds(pid: number) {
  const stat = readStat(pid)
  return stat ? stat.own / TICKS : Number.NaN
}

/** Returns the processor time of a process and its children, ended ones included, in seconds. */
export function cpuSecondsOfTree(pid: number) {
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

/** Returns the number of write system calls of a process so far, or NaN without /proc. */
export function writeCalls(pid: number) {
  try {
    return Number(/^syscw: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
  } catch {
    return Number.NaN
  }
}

/** The result of a section of the bench. */
export interface Section {
  title: string
  /** A description of what is measured and how. */
  about: string
  /** The rows of the table. A column is printed for each key that any of the rows has. */
  rows: Record<string, string | number | Spread>[]
}

/** Prints a section as a table. */
export function print({ title, about, rows }: Section) {
  console.log(`\n${title}: ${about}`)
  const shown = (row: Section['rows'][number]) =>
    Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, show(cell)]))
  console.table(rows.map(shown))
}

function show(cell: string | number | Spread) {
  if (typeof cell === 'string') return cell
  const round = (value: number) => Number(value.toPrecision(3))
  if (typeof cell === 'number') return round(cell)
  return `${round(cell.median)} (${round(cell.min)}–${round(cell.max)})`
}
