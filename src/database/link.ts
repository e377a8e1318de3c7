import { once } from 'node:events'
import net, { isIP, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import tls from 'node:tls'
import type { Config } from '../config.js'

export type Host = Config['DATABASE_URL']['hosts'][number]
type TlsMode = Config['DATABASE_URL']['tls']

/** How long opening a connection may take, in milliseconds. */
export const CONNECT_TIMEOUT = 2000

/** PostgreSQL's SSLRequest message: the length 8, then the request code 80877103. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])

/** The sockets of one connection to `host`. */
export interface Link {
  readonly host: Host
  /** The driver's object for the connection. Null until the connection is open. */
  state: object | null
  /** Opens the sockets. This is the option `socket` of postgres.js. */
  open(): Promise<Socket | Writable>
  /** Ends the time limit of CONNECT_TIMEOUT, because the connection is open. */
  keep(): void
  /** Returns whether the sockets are about to close. */
  isClosing(): boolean
  /** Closes the sockets at once, with a reset. Bytes that were not sent yet are dropped. */
  cut(): void
}

/**
 * Returns a link that can be opened once. It closes itself unless `keep` is called within
 * CONNECT_TIMEOUT. `onClose` is called when a link that was opened has closed.
 *
 * postgres.js opens another socket when it loses one while it connects. For such a call, `open`
 * returns a socket that fails, so that postgres.js rejects the statement for which it connects.
 */
export function createLink(host: Host, mode: TlsMode, onClose: () => void): Link {
  let timer: NodeJS.Timeout | undefined
  let tcp: Socket | undefined
  /** The socket that carries PostgreSQL's protocol: `tcp` itself, or the TLS socket on top of it. */
  let socket: Socket | undefined

  async function open() {
    if (tcp) return failingSocket(connectionLost())
    tcp = net.connect(host.port, host.host)
    timer = setTimeout(giveUp, CONNECT_TIMEOUT)
    try {
      socket = await startTls(tcp, host, mode)
    } catch (error) {
      cut()
      return failingSocket(error as Error)
    }
    // After an error in TLS, the TCP socket may stay open.
    socket.on('error', cut)
    tcp.on('error', cut)
    tcp.on('close', cut)
    socket.on('close', () => {
      socket = undefined
      onClose()
    })
    return socket
  }

  function giveUp() {
    const used = socket ?? tcp
    used?.destroy(new Error('the host does not answer'))
  }

  function cut() {
    clearTimeout(timer)
    // A reset drops the bytes that were not sent yet. Otherwise a statement that was reported as failed
    // could still reach the server and be executed, even after a later write.
    tcp?.resetAndDestroy()
    // While the socket is connecting, resetAndDestroy only waits for the connection.
    if (tcp?.connecting) tcp.destroy()
    socket?.destroy()
  }

  return {
    host,
    state: null,
    open,
    keep: () => clearTimeout(timer),
    isClosing: () => socket?.writable === false,
    cut,
  }
}

/**
 * Starts TLS on the TCP socket unless `mode` is `off`. Returns the socket for PostgreSQL's
 * protocol, which is the TLS socket or `tcp` itself. Throws if the server offers no TLS and `mode`
 * is not `preferred`, if the server's certificate is not accepted, or if `tcp` closes.
 *
 * postgres.js can start TLS itself, but it does not expose the TLS socket. A link must know when
 * that socket closes.
 */
async function startTls(tcp: Socket, { host }: Host, mode: TlsMode): Promise<Socket> {
  if (mode === 'off') return tcp
  const closed = once(tcp, 'close').then(() => {
    throw connectionLost()
  })
  tcp.write(SSL_REQUEST)
  const [answer] = (await Promise.race([once(tcp, 'data'), closed])) as [Buffer]
  if (answer.toString() !== 'S') {
    if (mode === 'preferred') return tcp
    throw new Error('the server offers no TLS')
  }
  const servername = isIP(host) ? undefined : host
  const secured = tls.connect({
    socket: tcp,
    // Node compares the certificate with `servername`, or with `host` if that is an IP address.
    host,
    servername,
    rejectUnauthorized: mode === 'verified',
  })
  await Promise.race([once(secured, 'secureConnect'), closed])
  return secured
}

/**
 * Returns a stream that fails with `error` when the driver writes to it. The option `socket` must
 * not throw: postgres.js would never use that one of its connections again.
 */
function failingSocket(error: Error) {
  return new Writable({
    write: (_chunk, _encoding, done) => done(error),
  })
}

/** Returns the error for a statement that was in flight when its connection closed. */
export const connectionLost = () =>
  Object.assign(new Error('the connection to the database was lost'), { code: 'CONNECTION_CLOSED' })
