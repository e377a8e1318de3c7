import { lookup } from 'node:dns/promises'
import type { Writable } from 'node:stream'
import { buildApp } from './app.js'
import type { Config } from './config.js'
import { drainer } from './drain.js'
import { migrate } from './migrate.js'
import { ensureAdministrador } from './usuario/administrador.js'

/** The longest that requests in flight may take once the service is told to stop, milliseconds. */
const GRACE = 7000

export interface Service {
  /** Where it listens, as `http://host:port`. */
  address: string
  /** Stops accepting, finishes what is in flight within GRACE, closes everything it opened. */
  close(): Promise<void>
}

/**
 * Starts the service: migrations, the first administrator, then listening. Throws, with everything
 * closed again, when one of them fails; a ConfigError when the fault is in the configuration.
 */
export async function serve(config: Config, options?: { logStream?: Writable }): Promise<Service> {
  const app = await buildApp(config, options)
  try {
    const applied = await migrate(app.sql)
    app.log.info({ applied }, 'database is up to date')
    if (config.administrador) await ensureAdministrador(app, config.administrador)
    const drain = drainer(app)
    // Of `localhost` Fastify would make two servers, one of which nothing here knows of.
    const { address: host } = await lookup(config.host)
    const address = await app.listen({ host, port: config.port })
    return {
      address,
      close: async () => {
        const timer = setTimeout(() => app.server.closeAllConnections(), GRACE)
        await drain()
        await app.close().finally(() => clearTimeout(timer))
      },
    }
  } catch (error) {
    await app.close()
    throw error
  }
}
