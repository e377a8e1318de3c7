import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { PNG, testApp } from './app.js'

it('logs why an upload failed, but nothing of an image that the host quotes', async () => {
  const host = createServer((_request, response) => {
    response.writeHead(400).end(JSON.stringify({ error: { message: `Invalid file ${PNG}` } }))
  }).listen(0, '127.0.0.1')
  await once(host, 'listening')
  const prefix = `http://127.0.0.1:${(host.address() as AddressInfo).port}`
  const { call, readLog } = await testApp({
    CLOUDINARY_URL: `cloudinary://clave:secreto@nube?upload_prefix=${prefix}`,
  })
  const usuario = { strNombreUsuario: 'a', idPerfil: 1, strPwd: 'x', strCorreo: 'a@x.es' }
  expect(await call('POST', '/api/usuario', { ...usuario, imagenBase64: PNG })).toMatchObject({
    status: 500,
    body: { statusCode: 500, message: 'No se pudo subir la imagen' },
  })
  expect(readLog()).toContain('Invalid file data:… (400)')
  expect(readLog()).not.toContain(PNG.slice(22, 40))
  host.close()
})
