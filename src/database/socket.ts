import { once } from 'node:events'
import { isIP, type Socket } from 'node:net'
import tls from 'node:tls'
import type { Config } from '../config.js'

export type Host = Config['DATABASE_URL']['hosts'][number]
export type TlsMode = Config['DATABASE_URL']['tls']

/** PostgreSQL's SSLRequest message: its length of 8 bytes, then the request code 80877103. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])

/**
 * Begins TLS on the TCP socket where `mode` asks for it. Returns the socket for PostgreSQL's protocol.
 * Throws where the server offers no TLS although `mode` requires it, and where its certificate is not
 * accepted.
 *
 * postgres.js can begin TLS itself, but does not hand out the TLS socket, which we need: a TLS error on
 * an idle connection need not close the TCP socket, and only the next statement would discover it.
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
    // The name that the certificate is checked for: `servername`, or an address in `host`.
    host,
    servername,
    rejectUnauthorized: mode === 'verified',
  })
  await once(secured, 'secureConnect')
  return secured
}
