import type { FastifyInstance } from 'fastify'
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  Registry,
} from 'prom-client'
import { VERSION } from '../../version.js'

/**
 * Adds `GET /metrics` in the text format of Prometheus: the release, the process (memory, CPU,
 * handles, event-loop delay), the requests by route and outcome, the statements of the database
 * pool, the log lines that were dropped, and `gauge`, which another part of the service provides.
 * The route needs no session.
 *
 * `readQueries` returns the numbers of the statements that the database pool has in each state, and
 * `readDroppedLines` that of the dropped log lines.
 */
export function addMetrics(
  app: FastifyInstance,
  readQueries: () => { running: number; waiting: number },
  readDroppedLines: () => number,
  gauge: GaugeConfiguration<string>,
) {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  // `promtool check metrics` refuses gauges whose names end in `_total`, as those of counters do.
  // No information is lost: `nodejs_active_handles`, for example, has one value for each type.
  registry.removeSingleMetric('nodejs_active_handles_total')
  registry.removeSingleMetric('nodejs_active_requests_total')
  registry.removeSingleMetric('nodejs_active_resources_total')

  new Gauge({
    name: 'llavero_build_info',
    help: 'The release that runs; the value is always 1',
    labelNames: ['version'],
    registers,
  }).set({ version: VERSION }, 1)

  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the head of a request until its answer is ready, by route and outcome',
    labelNames: ['method', 'route', 'status', 'outcome'],
    registers,
  })
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { method, routeOptions, failure } = request
    // The label is the pattern of the route. Clients could invent any number of different paths.
    const route = routeOptions.url ?? 'none'
    const status = reply.statusCode
    const outcome = failure?.code ?? 'done'
    const seconds = reply.elapsedTime / 1000
    duration.observe({ method, route, status, outcome }, seconds)
    done()
  })

  new Gauge({
    name: 'llavero_database_queries',
    help: 'Statements without an answer: running, or waiting for a connection',
    labelNames: ['state'],
    registers,
    collect() {
      const { running, waiting } = readQueries()
      this.set({ state: 'running' }, running)
      this.set({ state: 'waiting' }, waiting)
    },
  })
  new Gauge({ ...gauge, registers })
  new Counter({
    name: 'llavero_log_lines_dropped_total',
    help: 'Log lines that could not be written',
    registers,
    collect() {
      this.reset()
      this.inc(readDroppedLines())
    },
  })

  app.get('/metrics', async (_request, reply) => {
    reply.type(registry.contentType)
    return registry.metrics()
  })
}
