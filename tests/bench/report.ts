import type { Spread } from './measure.js'

export type Cell = string | number | Spread

/** What must hold, from issue to verdict. */
export interface Goal {
  goal: string
  measured: number
  holds: boolean
}

export interface Section {
  title: string
  /** What is measured and how, in a line or two. */
  about: string
  /** The keys of the first row are the columns. */
  rows: Record<string, Cell>[]
  goals: Goal[]
}

export const atLeast = (what: string, limit: number, measured: number): Goal => ({
  goal: `${what} ≥ ${format(limit)}`,
  measured,
  holds: measured >= limit,
})

export const atMost = (what: string, limit: number, measured: number): Goal => ({
  goal: `${what} ≤ ${format(limit)}`,
  measured,
  holds: measured <= limit,
})

export function markdown({ title, about, rows, goals }: Section) {
  const columns = Object.keys(rows[0] ?? {})
  const table = [
    `| ${columns.join(' | ')} |`,
    `|${columns.map((_, index) => (index === 0 ? '---|' : '--:|')).join('')}`,
    ...rows.map((row) => `| ${columns.map((column) => show(row[column] ?? '')).join(' | ')} |`),
  ]
  const verdicts = goals.map(
    ({ goal, measured, holds }) =>
      `- ${holds ? 'holds' : '**misses**'}: ${goal}; ${format(measured)}`,
  )
  return [`## ${title}`, about, table.join('\n'), verdicts.join('\n')].filter(Boolean).join('\n\n')
}

function show(cell: Cell) {
  if (typeof cell === 'string') return cell
  if (typeof cell === 'number') return format(cell)
  return `${format(cell.median)} (${format(cell.min)}–${format(cell.max)})`
}

/** Three significant digits. */
function format(value: number) {
  if (Number.isNaN(value)) return '?'
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return `${Number(value.toPrecision(3))}`
}
