import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import openapiTS, { astToString } from 'openapi-typescript'
import { expect, it } from 'vitest'
import { ADMIN, testApp } from '../app.js'

const FOLDER = fileURLToPath(new URL('../client/', import.meta.url))

it('a client that is written against the types generated from the document compiles strictly and calls every operation', async () => {
  const { app } = await testApp()
  const requests: string[] = []
  app.server.on('request', ({ method, url }) => requests.push(`${method} ${url}`))
  const document = (await app.inject('/docs/json')).json()
  await writeFile(`${FOLDER}api.ts`, astToString(await openapiTS(document)))
  await promisify(execFile)('node_modules/.bin/tsc', ['-p', FOLDER])

  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  const { recorrer } = await import(`${FOLDER}recorrido.ts`)
  const result = await recorrer(address, { ...ADMIN, captchaToken: 'humano' })
  expect(result).toMatchObject({
    refusal: 'Usuario o contraseña incorrectos.',
    user: { nombre: ADMIN.strNombreUsuario },
    perfil: { strNombrePerfil: 'Lectura', bitAdministrador: false },
    modulo: { strNombreModulo: 'BIBLIOTECA' },
    permiso: { bitConsulta: true, bitDetalle: false },
    acciones: { nombreModulo: 'BIBLIOTECA', bitConsulta: true },
    usuario: { strNombreUsuario: 'lectora', strNumeroCelular: null, nombrePerfil: 'Lectura' },
    message: 'Sesión cerrada correctamente',
  })
  for (const [path, item] of Object.entries<object>(document.paths)) {
    for (const method of Object.keys(item)) {
      const called = `^${method.toUpperCase()} ${path.replace(/{\w+}/, '\\d+')}(\\?|$)`
      expect(requests).toContainEqual(expect.stringMatching(called))
    }
  }
})
