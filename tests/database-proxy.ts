import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { CERTIFICATE } from './tls.js'

/** The eight bytes with which a PostgreSQL client asks for TLS. */
const SSL_REQUEST_LENGTH = 8

/** One client of the proxy: its bare socket, and the one that carries PostgreSQL's protocol. */
interface Client {
  raw: Socket
  stream: Socket
  server: Socket
}

/**
 * A way to the database of `url` that can fail as networks do. With `tls` the way from the client
 * to the proxy is encrypted.
 */
export async function startDatabaseProxy(url: URL, { tls = false } = {}) {
  const clients = new Set<Client>()
  /** Connections that came while the proxy was silent. */
  const held: Socket[] = []
  let isSilent = false
  let isRefusing = false
  let connections = 0

  function connect(raw: Socket, stream: Socket) {
    const server = net.connect(Number(url.port), url.hostname)
    const client = { raw, stream, server }
    clients.add(client)
    stream.pipe(server).pipe(stream)
    server.on('error', () => {})
    stream.on('error', () => {})
    stream.on('close', () => {
      clients.delete(client)
      server.destroy()
    })
  }

  async function accept(raw: Socket) {
    if (!tls) return connect(raw, raw)
    while ((raw.read(SSL_REQUEST_LENGTH) as Buffer | null) === null) {
      if (raw.destroyed) return
      await Promise.race([once(raw, 'readable'), once(raw, 'close')]).catch(() => {})
    }
    raw.write('S')
    connect(raw, new TLSSocket(raw, { isServer: true, ...CERTIFICATE }))
  }

  const listener = net.createServer((raw) => {
    connections += 1
    raw.on('error', () => {})
    if (isRefusing) raw.destroy()
    else if (isSilent) held.push(raw)
    else void accept(raw)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo

  const address = new URL(url)
  address.host = `127.0.0.1:${port}`
  if (tls) address.searchParams.set('sslmode', 'require')

  return {
    url: address,
    host: { host: '127.0.0.1', port },
    /** How many connections clients have opened so far. */
    connections: () => connections,
    /** Ends every connection with what TCP sends for a process that closes its socket. */
    cut: () => {
      for (const { raw } of clients) raw.destroy()
    },
    /** Ends every connection with a TCP reset. */
    reset: () => {
      for (const { raw } of clients) raw.resetAndDestroy()
    },
    /** Ends the server's half of every connection, and leaves the client's half open. */
    halfClose: () => {
      for (const { stream, server } of clients) {
        server.unpipe(stream)
        stream.end()
      }
    },
    /** Sends bytes that mean nothing in the protocol, below TLS where there is TLS. */
    corrupt: () => {
      for (const { raw } of clients) raw.write(Buffer.from([0xff, 3, 3, 0, 2, 1, 1]))
    },
    /** From now on nothing comes through any more, and nobody is told. */
    silence: () => {
      isSilent = true
      for (const { stream, server } of clients) {
        stream.unpipe(server)
        server.unpipe(stream)
        stream.resume()
        server.resume()
      }
    },
    /** Closes all connections, and from now on every new one at once. */
    refuse: () => {
      isRefusing = true
      for (const { raw } of clients) raw.destroy()
    },
    /** From now on new connections come through again, and those that came in silence as well. */
    serve: () => {
      isSilent = false
      isRefusing = false
      for (const raw of held.splice(0)) void accept(raw)
    },
    stop: async () => {
      for (const { raw } of clients) raw.destroy()
      for (const raw of held) raw.destroy()
      listener.close()
    },
  }
}
