import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { testApp } from './app.js'

const { app, call, login } = await testApp()

const ask = async (url: string) => {
  const { status, body } = await call('GET', url, undefined, { token: null })
  return { status, body }
}
const OK = { status: 200, body: { status: 'ok' } }
const NOT_READY = { statusCode: 503, message: 'No disponible' }

it('is said to anybody', async () => {
  expect(await ask('/health/live')).toEqual(OK)
  expect(await ask('/health/ready')).toEqual(OK)
})

it('is asked of the database once for all who wait for it', async () => {
  const asked = Array.from({ length: 20 }, () => ask('/health/ready'))
  const most = { waiting: 0, running: 0 }
  let isAnswered = false
  const answers = Promise.all(asked).finally(() => {
    isAnswered = true
  })
  while (!isAnswered) {
    const { waiting, running } = app.sql.usage()
    most.waiting = Math.max(most.waiting, waiting)
    most.running = Math.max(most.running, running)
    await setImmediate()
  }
  expect(new Set((await answers).map(({ status }) => status))).toEqual(new Set([200]))
  expect(most).toEqual({ waiting: 0, running: 1 })
})

it('without its database is alive and not ready', async () => {
  const through = await testApp({ DATABASE_POOL_MAX: '1' })
  await through.app.sql.end()
  const { status, body } = await through.call('GET', '/health/ready')
  expect({ status, body }).toEqual({ status: 503, body: NOT_READY })
  expect((await through.call('GET', '/health/live')).body).toEqual(OK.body)
})

it('is not said by a server in recovery, which knows no session either', async () => {
  const { id: idPerfil } = (await call('POST', '/api/perfil', { strNombrePerfil: 'x' })).body.data
  const usuario = { strNombreUsuario: 'x', strPwd: 'x', strCorreo: 'x@x.es', idPerfil }
  const { id } = (await call('POST', '/api/usuario', usuario)).body.data
  const token = await login('x', 'x')
  await call('DELETE', `/api/usuario/${id}`)
  const paths = ['/api/perfil/list', `/api/permisos/mis-permisos/${idPerfil}`]
  const asked = async () =>
    Promise.all(paths.map(async (path) => (await call('GET', path, undefined, { token })).status))
  // Asked for what is not there, so that it is the statement that fails and not its row.
  expect(await asked()).toEqual([401, 401])

  await app.sql`alter function require_primary rename to require_primary_of_old`
  await app.sql`create function require_primary() returns boolean language plpgsql stable
    as 'begin raise read_only_sql_transaction; end'`
  expect((await ask('/health/ready')).body).toEqual(NOT_READY)
  expect(await asked()).toEqual([500, 500])
  await app.sql`drop function require_primary`
  await app.sql`alter function require_primary_of_old rename to require_primary`
  expect(await asked()).toEqual([401, 401])
})

it('is no longer ready when it closes, on the connections that are still open', async () => {
  const { hostname, port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const socket = connect(Number(port), hostname)
  const accepted = once(app.server, 'connection')
  // Half a request: a connection without any is closed at once.
  socket.write('GET /health/ready HTTP/1.1\r\nHost: x\r\n')
  const [half] = await accepted
  await expect.poll(() => half.bytesRead).toBeGreaterThan(0)
  const closed = app.close()
  await expect.poll(() => app.server.listening).toBe(false)
  socket.write('\r\n')
  const answer = await text(socket)
  expect(answer).toMatch(/^HTTP\/1\.1 503 /)
  expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toEqual(NOT_READY)
  await closed
})
