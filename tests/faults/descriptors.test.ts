import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it } from 'vitest'
import { cloneDatabase } from '../app.js'
import { startService } from './service.js'

const CONNECTIONS = 100
const REQUESTS = 8
const FILE = '/docs/static/swagger-ui-bundle.js'
/** How many descriptors the service may open for itself, mostly database connections. */
const OWN = 20

/** Opens a connection that sends several requests for FILE at once and reads no answer. */
async function open(address: string) {
  const client = connect(Number(new URL(address).port), '127.0.0.1')
  await once(client, 'connect')
  client.on('error', () => {})
  client.write(`GET ${FILE} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(REQUESTS))
  await once(client, 'readable')
  return client
}

it.skipIf(process.platform !== 'linux')(
  'a client that reads no answers keeps no descriptor open but its connection',
  async () => {
    const { address, resources } = await startService({ DATABASE_URL: await cloneDatabase() })
    const before = resources().handles
    const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(address)))
    expect(resources().handles).toBeLessThan(before + CONNECTIONS + OWN)

    for (const client of clients) client.destroy()
    await expect.poll(() => resources().handles).toBeLessThan(before + OWN)
  },
)
