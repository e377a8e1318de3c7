// @ts-nocheck: the types would come from the compiled service, which may not exist yet.
//
// A process that does nothing but query: `queries.js service` through the service's pool,
// `queries.js driver` through an instance of postgres.js. Neither of them sends a query on a
// connection that still waits for an answer. Each message that the process receives is a number of
// seconds. The process queries for that time, and then sends a message with the number of answered
// queries and the processor time that they took, in seconds.
import postgres from 'postgres'

const importCompiled = (path) => import(new URL(`../../dist/${path}`, import.meta.url).href)
const { loadConfig } = await importCompiled('config.js')
const { openPool } = await importCompiled('database/pool.js')

const CONNECTIONS = 10

async function open(way) {
  const { DATABASE_URL } = process.env
  if (way !== 'service') {
    return postgres(DATABASE_URL, { max: CONNECTIONS, max_pipeline: 0 })
  }
  const config = loadConfig({ ...process.env, DATABASE_POOL_MAX: String(CONNECTIONS) })
  return openPool(config, console)
}

const sql = await open(process.argv[2])

async function query(deadline) {
  let count = 0
  while (performance.now() < deadline) {
    const [row] = await sql`select ${count}::integer as count`
    if (row.count !== count) throw new Error(`${count} expected, ${row.count} given`)
    count += 1
  }
  return count
}

process.on('message', async (seconds) => {
  const before = process.cpuUsage()
  const deadline = performance.now() + seconds * 1000
  const counts = await Promise.all(Array.from({ length: CONNECTIONS }, () => query(deadline)))
  const { user, system } = process.cpuUsage(before)
  const queries = counts.reduce((sum, count) => sum + count)
  process.send({ queries, cpuSeconds: (user + system) / 1e6 })
})
