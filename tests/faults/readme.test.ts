import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { ADMIN_ENV, testApp } from '../app.js'

const { app } = await testApp()

it('has a worked example that works as it stands', async () => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
  const [, script = ''] = /```bash worked-example\n(.*?)```/s.exec(readme) ?? []
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], {
    env: {
      PATH: process.env.PATH,
      URL: await app.listen({ host: '127.0.0.1', port: 0 }),
      ...ADMIN_ENV,
    },
  })
  const forbidden = '{"statusCode":403,"message":"No tiene permiso para realizar esta acción"}'
  expect(stdout.trim().split('\n')).toEqual([
    '{"success":true,"message":"Matriz actualizada correctamente"}',
    'true',
    '{"success":true,"permisos":{"BIBLIOTECA":{"nombreModulo":"BIBLIOTECA","bitAgregar":false,' +
      '"bitEditar":false,"bitConsulta":true,"bitEliminar":false,"bitDetalle":false}}}',
    forbidden,
    forbidden,
  ])
})
