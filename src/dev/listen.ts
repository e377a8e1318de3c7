import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * Starts an HTTP server. With port 0 the system chooses a free port. Throws if the port is taken.
 */
export async function listen(listener: RequestListener, port = 0, host = '127.0.0.1') {
  const server = createServer(listener).listen(port, host)
  await once(server, 'listening')
  const address = server.address() as AddressInfo
  return {
    url: `http://${host}:${address.port}`,
    port: address.port,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
