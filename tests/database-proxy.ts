import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { CERTIFICATE } from './tls.js'

/** The length in bytes of the message with which a PostgreSQL client asks for TLS. */
const SSL_REQUEST_LENGTH = 8

/** A client of the proxy: its TCP socket, the stream inside TLS, and the socket to the server. */
interface Client {
  raw: Socket
  stream: Socket
  server: Socket
}

/**
 * Starts a TCP proxy to the database of `url` that can fail like a network. If `url` is changed,
 * new connections lead elsewhere. With `tls`, clients connect to the proxy over TLS.
 */
export async function startDatabaseProxy(url: URL, { tls = false } = {}) {
  const clients = new Set<Client>()
  /** Connections that clients opened while the proxy was silent. */
  const held: Socket[] = []
  /** Connections to the server whose clients have gone during the silence. */
  const abandoned: Socket[] = []
  /** What happens to new connections. */
  let mode: 'serve' | 'silence' | 'refuse' | 'hangUp' = 'serve'
  let connections = 0

  function connect(raw: Socket, stream: Socket) {
    if (mode === 'hangUp') {
      stream.on('error', () => {})
      stream.once('data', () => stream.end())
      return
    }
    const server = net.connect(Number(url.port), url.hostname)
    const client = { raw, stream, server }
    clients.add(client)
    stream.pipe(server).pipe(stream)
    server.on('error', () => mode === 'silence' || stream.destroy())
    stream.on('error', () => {})
    stream.on('close', () => {
      clients.delete(client)
      // In a silent network the server does not learn that the client has gone.
      if (mode === 'silence') abandoned.push(server)
      else server.destroy()
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
    if (mode === 'refuse') raw.destroy()
    else if (mode === 'silence') held.push(raw)
    else void accept(raw)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo

  const address = new URL(url)
  address.host = `127.0.0.1:${port}`
  if (tls) address.searchParams.set('sslmode', 'require')

  function cut() {
    for (const { raw } of clients) raw.destroy()
  }

  return {
    url: address,
    host: { host: '127.0.0.1', port },
    /** Returns how many connections clients have opened so far. */
    connections: () => connections,
    /** Closes every connection to a client, with a TCP FIN. */
    cut,
    /** Closes every connection to a client with a TCP reset. */
    reset: () => {
      for (const { raw } of clients) raw.resetAndDestroy()
    },
    /** Closes the server's half of every connection; the client's half stays open. */
    halfClose: () => {
      for (const { stream, server } of clients) {
        server.unpipe(stream)
        stream.end()
      }
    },
    /** Sends invalid bytes to every client, outside TLS when the connection has TLS. */
    corrupt: () => {
      for (const { raw } of clients) raw.write(Buffer.from([0xff, 3, 3, 0, 2, 1, 1]))
    },
    /** Drops all bytes from now on and keeps every connection open. */
    silence: () => {
      mode = 'silence'
      for (const { stream, server } of clients) {
        stream.unpipe(server)
        server.unpipe(stream)
        stream.resume()
        server.resume()
      }
    },
    /** Passes on no bytes of the present clients until `resume` is called. */
    pause: () => {
      for (const { stream, server } of clients) stream.unpipe(server)
    },
    /** Passes on the bytes that clients have sent since `pause`. */
    resume: () => {
      for (const { stream, server } of clients) stream.unpipe(server).pipe(server)
    },
    /** Answers no new connection from now on. */
    hold: () => {
      mode = 'silence'
    },
    /** Closes each new connection at once, and keeps those that are forwarded. */
    refuseFurther: () => {
      mode = 'refuse'
    },
    /** Closes every connection that is forwarded, and from now on each new one at once. */
    refuse: () => {
      mode = 'refuse'
      cut()
    },
    /**
     * Closes all connections, and each new one after its first message, as if the server were gone.
     */
    hangUp: () => {
      mode = 'hangUp'
      cut()
    },
    /** Forwards new connections again, and those that clients opened during the silence. */
    serve: () => {
      mode = 'serve'
      for (const raw of held.splice(0)) void accept(raw)
    },
    stop: async () => {
      cut()
      for (const socket of [...held, ...abandoned]) socket.destroy()
      listener.close()
    },
  }
}
