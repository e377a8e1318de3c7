import { once } from 'node:events'
import { isIP, type Socket } from 'node:net'
import tls from 'node:tls'
import type { Config } from '../config.js'

export type Host = Config['DATABASE_URL']['hosts'][number]
export type TlsMode = Config['DATABASE_URL']['tls']

/** PostgreSQL's SSLRequest message: the length 8, then the request code 80877103. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])

/**
 * Starts TLS on the TCP socket unless `mode` is `off`. Returns the socket for PostgreSQL's
 * protocol, which is the TLS socket or `tcp` itself. Throws if the server offers no TLS and `mode`
 * is not `preferred`, or if the server's certificate is not accepted.
 *
 * postgres.js can start TLS itself, but it does not expose the TLS socket. openConnection listens
 * for the errors of that socket, because a TLS error on an idle connection may leave the TCP socket
 * open. Without a listener only the next statement would reveal the error.
 */
export async function startTls(tcp: Socket, { host }: Host, mode: TlsMode): Promise<Socket> {
  if (mode === 'off') return tcp
  tcp.write(SSL_REQUEST)
  const [answer] = (await once(tcp, 'data')) as [Buffer]
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
  await once(secured, 'secureConnect')
  return secured
}
