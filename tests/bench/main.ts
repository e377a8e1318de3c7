/**
 * `npm run bench [-- --only map|login|matrix|lists|start] [--seconds N] [--json FILE]
 * [--images]`: measures the compiled service beside references in the same run and prints tables in
 * Markdown; with --images it also builds container images, for their sizes.
 */
import { writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { startBench } from './bench.js'
import { markdown, type Section } from './report.js'
import { lists } from './sections/lists.js'
import { login } from './sections/login.js'
import { map } from './sections/map.js'
import { matrix } from './sections/matrix.js'
import { start } from './sections/start.js'

const SECTIONS = { map, login, matrix, lists, start }

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '2' },
    json: { type: 'string' },
    images: { type: 'boolean', default: false },
  },
})
const seconds = Number(values.seconds)
const chosen = Object.entries(SECTIONS).filter(([name]) => [undefined, name].includes(values.only))
if (chosen.length === 0 || !(seconds >= 1)) {
  console.error(`--only ${Object.keys(SECTIONS).join('|')}, --seconds 1 or more`)
  process.exit(2)
}
const begin = performance.now()
const loadBefore = Number((loadavg()[0] ?? 0).toFixed(2))
const bench = await startBench({ seconds, images: values.images })
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => bench.stop().finally(() => process.exit(1)))
}
const sections: Record<string, Section> = {}
const { perfiles, modulos, permisos } = bench.data.counts
const machine = {
  cores: availableParallelism(),
  memoryGb: Math.round(totalmem() / 1e9),
  node: process.version,
  loadBefore,
  postgresql: bench.database.version,
  data: { perfiles, modulos, permisos },
}
try {
  console.log(
    `# Benchmark\n\n${machine.cores} cores and ${machine.memoryGb} GB, shared by PostgreSQL ` +
      `${machine.postgresql}, the servers (Node ${machine.node}) and the load generator; ` +
      `${perfiles} profiles, ${modulos} modules, ${permisos} records. ` +
      `Load average before the start: ${machine.loadBefore}.\n`,
  )
  for (const [name, measure] of chosen) {
    const section = await measure(bench)
    sections[name] = section
    console.log(`${markdown(section)}\n`)
  }
} finally {
  await bench.stop()
}
const tookSeconds = Math.round((performance.now() - begin) / 1000)
console.log(`${tookSeconds} s in all.`)
if (values.json) {
  await writeFile(values.json, `${JSON.stringify({ machine, tookSeconds, sections }, null, 2)}\n`)
}
