import { hostname } from 'node:os'
import { expect, it } from 'vitest'
import { ADMIN, testApp } from './app.js'

const { call, readLog } = await testApp()
const who = { id: 1, nombre: ADMIN.strNombreUsuario, idPerfil: 1, perfil: 'ADMINISTRADOR' }

/** The audit line of the request that was answered with these headers. */
const auditLine = ({ headers }: { headers: Record<string, unknown> }) =>
  readLog()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .find(({ msg, reqId }) => msg === 'audit' && reqId === headers['x-request-id'])

it('says who wrote what, and how it ended', async () => {
  const created = await call('POST', '/api/modulo', { strNombreModulo: 'ventas' })
  const { id } = created.body.data
  expect(auditLine(created)).toEqual({
    level: 30,
    time: expect.any(Number),
    pid: process.pid,
    hostname: hostname(),
    reqId: created.headers['x-request-id'],
    msg: 'audit',
    who,
    method: 'POST',
    route: '/api/modulo',
    target: id,
    outcome: 'done',
    status: 200,
  })
  const edited = await call('PUT', `/api/modulo/${id}`, { strNombreModulo: '' })
  expect(auditLine(edited)).toMatchObject({ who, target: id, outcome: 'invalid', status: 200 })
  const matriz = await call('POST', '/api/permisos/guardar-matriz', { idPerfil: 1 })
  expect(auditLine(matriz)).toMatchObject({ who, target: 1, outcome: 'done' })
})

it('has refused writes too, and no reads', async () => {
  const nobody = await call('DELETE', '/api/permisos/1', undefined, { token: null })
  expect(auditLine(nobody)).toMatchObject({ who: null, target: 1, outcome: 'unauthenticated' })
  const unknown = await call('DELETE', '/api/modulo/x')
  expect(auditLine(unknown)).toMatchObject({ who, target: null, outcome: 'invalid' })
  expect(auditLine(await call('GET', '/api/perfil'))).toBeUndefined()
  expect(auditLine(await call('HEAD', '/api/perfil'))).toBeUndefined()
  const credentials = { ...ADMIN, captchaToken: 'humano' }
  expect(auditLine(await call('POST', '/api/auth/login', credentials))).toBeUndefined()
})
