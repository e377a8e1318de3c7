/**
 * Measures the compiled service beside references in the same run and prints tables:
 * `npm run bench -- [--only SECTION] [--seconds N] [--endpoint NAME …]`. `--endpoint` measures
 * these rows of the section `endpoints` and nothing else.
 */
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { startBench } from './bench.js'
import { describeComparison } from './compare.js'
import { endpoints } from './sections/endpoints.js'
import { lookup } from './sections/lookup.js'

const SECTIONS = { endpoints, lookup }

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '2' },
    endpoint: { type: 'string', multiple: true, default: [] },
  },
})
const seconds = Number(values.seconds)
const only = values.endpoint.length === 0 ? values.only : 'endpoints'
const chosen = Object.entries(SECTIONS).filter(([name]) => only === undefined || only === name)
if (chosen.length === 0 || !(Number.isInteger(seconds) && seconds >= 1)) {
  console.error(
    `--only ${Object.keys(SECTIONS).join('|')}, --seconds a whole number from 1, --endpoint NAME`,
  )
  process.exit(2)
}
const machine =
  `${availableParallelism()} cores, shared by PostgreSQL, the servers (Node ${process.version}) ` +
  `and the load generator. Load average before the start: ${loadavg()[0]?.toFixed(2)}.`
const bench = await startBench({ seconds, endpoints: values.endpoint })
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => bench.stop().finally(() => process.exit(1)))
}
try {
  console.log(machine)
  console.log(describeComparison(seconds))
  for (const [, measure] of chosen) {
    const { about, rows } = await measure(bench)
    console.log(`\n${about}`)
    console.table(rows)
  }
} finally {
  await bench.stop()
}
