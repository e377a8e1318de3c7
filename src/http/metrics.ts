import fp from 'fastify-plugin'
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { onAnswered } from './log.js'

/** A figure that the application adds. `read` returns its present value. */
interface AppGauge {
  name: string
  help: string
  read(): number
}

/**
 * `GET /metrics` in Prometheus' text: the process itself (memory, CPU, handles, event-loop delay),
 * requests by route and status, the pool, and the `gauges`. Whoever reaches it may read it.
 */
export default fp<{ gauges: AppGauge[] }>(async (app, { gauges }) => {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'From the head of a request to the end of its answer, by route and outcome',
    labelNames: ['method', 'route', 'status', 'outcome'],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  })
  onAnswered(app, ({ method, routeOptions, failure }, { statusCode: status, elapsedTime }) => {
    // The route and not the path, which is anybody's to invent.
    const route = routeOptions.url ?? 'none'
    const outcome = failure?.code ?? 'done'
    duration.observe({ method, route, status, outcome }, elapsedTime / 1000)
  })

  new Gauge({
    name: 'llavero_database_queries',
    help: 'Queries without an answer: as many as run at most, and those that wait',
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, count] of Object.entries(app.sql.usage())) this.set({ state }, count)
    },
  })
  for (const { name, help, read } of gauges) {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  }

  app.get('/metrics', async (_request, reply) => {
    reply.type(registry.contentType)
    return registry.metrics()
  })
})
