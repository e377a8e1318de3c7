import { expect, it } from 'vitest'
import { NOT_READY, READY, withoutHeaders } from './answers.js'
import { testApp } from './app.js'

const { app, call, login } = await testApp({ DATABASE_POOL_MAX: '1' })

const ask = async (url: string) =>
  withoutHeaders(await call('GET', url, undefined, { token: null }))

it('answers 200 at /health/live and /health/ready without a session, even with one connection', async () => {
  expect(await ask('/health/live')).toEqual(READY)
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask('/health/ready')))
  expect(answers).toEqual(Array(20).fill(READY))
})

it('answers 503 at /health/ready and 500 to users while the database is in recovery', async () => {
  const { id: idPerfil } = (await call('POST', '/api/perfil', { strNombrePerfil: 'x' })).body.data
  const usuario = { strNombreUsuario: 'x', strPwd: 'x', strCorreo: 'x@x.es', idPerfil }
  const { id } = (await call('POST', '/api/usuario', usuario)).body.data
  const token = await login('x', 'x')
  await call('DELETE', `/api/usuario/${id}`)
  const paths = ['/api/perfil/list', `/api/permisos/mis-permisos/${idPerfil}`]
  const statuses = async () =>
    Promise.all(paths.map(async (path) => (await call('GET', path, undefined, { token })).status))
  // The user has been deleted, so on a primary the look-up of the session finds no user and the
  // answer is 401. On a standby the look-up would find no user either. But there it must fail, so
  // that the answer is a 500 and no 401.
  expect(await statuses()).toEqual([401, 401])

  await app.sql`alter function require_primary rename to require_primary_of_old`
  await app.sql`create function require_primary() returns boolean language plpgsql stable
    as 'begin raise read_only_sql_transaction; end'`
  expect(await ask('/health/ready')).toEqual(NOT_READY)
  expect(await ask('/health/live')).toEqual(READY)
  expect(await statuses()).toEqual([500, 500])
  await app.sql`drop function require_primary`
  await app.sql`alter function require_primary_of_old rename to require_primary`
  expect(await statuses()).toEqual([401, 401])
})
