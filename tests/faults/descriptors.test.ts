import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { cloneDatabase } from '../app.js'
import { type Service, startService } from './service.js'

const CONNECTIONS = 100
const REQUESTS = 8
/** How many descriptors the service may open for itself, mostly database connections. */
const OWN = 20

let service: Service

beforeAll(async () => {
  service = await startService({ DATABASE_URL: await cloneDatabase() })
  await (await fetch(`${service.address}/docs/static/swagger-ui.css`)).text()
})

/** Opens a connection that sends several requests for a path at once and reads no answer. */
async function open(path: string) {
  const client = connect(Number(new URL(service.address).port), '127.0.0.1')
  await once(client, 'connect')
  client.on('error', () => {})
  client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(REQUESTS))
  await once(client, 'readable')
  return client
}

describe.skipIf(process.platform !== 'linux')('a client that reads no answers', () => {
  it.each(['/docs/static/swagger-ui-bundle.js', '/docs/json'])(
    'keeps no descriptor open but its connection: %s',
    async (path) => {
      const before = service.resources().handles
      const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(path)))
      expect(service.resources().handles).toBeLessThan(before + CONNECTIONS + OWN)

      for (const client of clients) client.destroy()
      await expect.poll(() => service.resources().handles).toBeLessThan(before + OWN)
    },
  )
})
