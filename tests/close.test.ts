import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import postgres from 'postgres'
import { expect, it, onTestFinished, vi } from 'vitest'
import { testApp } from './app.js'

it('closing ends the connections to the database', async () => {
  const { app, config, call } = await testApp()
  await call('GET', '/api/perfil/list')
  const admin = postgres(config.databaseUrl, { max: 1 })
  const sessions = () => admin`
    select pid from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
  `
  expect(await sessions()).not.toEqual([])
  await app.close()
  await expect.poll(sessions).toEqual([])
  await admin.end()
})

it('an answer that nobody takes is cut off after 60 s, and one that is taken never', async () => {
  const { app, adminToken } = await testApp()
  // More than the kernel's buffers hold.
  await app.sql`
    insert into perfil ("strNombrePerfil") select repeat('x', 250) from generate_series(1, 100000)
  `
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  /** Asks for the list; gives the service's side of the connection. */
  async function ask() {
    const accepted = once(app.server, 'connection')
    const client = connect(port, '127.0.0.1')
    client.on('error', () => {})
    const [server] = (await accepted) as [Socket]
    client.write(
      `GET /api/perfil/list HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${adminToken}\r\n\r\n`,
    )
    return { client, server }
  }
  /** Waits in real time. */
  async function until(holds: () => boolean) {
    const end = Date.now() + 5000
    while (!holds() && Date.now() < end) await new Promise((done) => setImmediate(done))
    expect(holds()).toBe(true)
  }

  const quick = await ask()
  let end = ''
  quick.client.on('data', (bytes) => {
    end = bytes.toString().slice(-2)
  })
  await until(() => end === ']}')
  const slow = await ask()
  slow.client.pause()
  await until(() => slow.server.writableLength > 0)
  vi.advanceTimersByTime(59_999)
  expect(slow.server.destroyed).toBe(false)
  vi.advanceTimersByTime(1)
  expect(slow.server.destroyed).toBe(true)
  expect(quick.server.destroyed).toBe(false)
  slow.client.destroy()
  quick.client.destroy()
})
