import type { InjectOptions } from 'fastify'
import { describe, expect, it } from 'vitest'
import { PNG, testApp } from './app.js'
import { A, B, ENDPOINTS } from './endpoints.js'

const json = { 'content-type': 'application/json' }

const test = await testApp()

/** Sends JSON as it is written, or nothing. */
async function send(method: InjectOptions['method'], path: string, text?: string) {
  const { status, body } = await test.call(method, path, text, text ? { headers: json } : {})
  return { status, body }
}

/** Each text after a name for its test, of no more than 40 characters. */
const named = (texts: string[]) => texts.map((text) => [text.slice(0, 40), text] as const)

const DIGITS = '9'.repeat(400)
const HUGE = ['2147483648', '9007199254740993', '1e400', '-1e400', DIGITS, '-1', '1e21']

describe('ids beyond every column', () => {
  const UNKNOWN_PAIR = A(400, 'El perfil o el módulo no existe')
  const usuario = (id: string) =>
    `{"strNombreUsuario":"x","idPerfil":${id},"strPwd":"x","strCorreo":"x@y.zz","idEstadoUsuario":true}`

  it.each(named(HUGE.flatMap((id) => [id, `"${id}"`])))(
    'are unknown in a body: %s',
    async (_, id) => {
      const pair = `{"idPerfil":${id},"idModulo":1}`
      const matrix = `{"idPerfil":1,"permisos":[{"idModulo":${id}}]}`
      const noProfile = A(500, 'El perfil indicado no existe')
      const notSaved = A(500, 'Error al guardar en base de datos')
      expect(await send('POST', '/api/permisos', pair)).toEqual(UNKNOWN_PAIR)
      expect(await send('PUT', '/api/permisos/1', pair)).toEqual(UNKNOWN_PAIR)
      expect(await send('POST', '/api/permisos/guardar-matriz', matrix)).toEqual(notSaved)
      expect(await send('POST', '/api/usuario', usuario(id))).toEqual(noProfile)
      expect(await send('PUT', '/api/usuario/1', usuario(id))).toEqual(noProfile)
      expect(await send('POST', '/api/permisos/guardar-matriz', `{"idPerfil":${id}}`)).toEqual({
        status: 200,
        body: { success: true, message: 'Matriz actualizada correctamente' },
      })
    },
  )

  it.each(named(HUGE))('are unknown in a path: %s', async (_, id) => {
    const perfil = '{"strNombrePerfil":"x","bitAdministrador":true}'
    const ok = (rest: object) => ({ status: 200, body: { success: true, ...rest } })
    expect(await send('PUT', `/api/perfil/${id}`, perfil)).toEqual(A(404, 'Perfil no encontrado'))
    expect(await send('PUT', `/api/permisos/${id}`, '{"idPerfil":1,"idModulo":1}')).toEqual(
      A(404, 'Permiso no encontrado'),
    )
    expect(await send('DELETE', `/api/permisos/${id}`)).toEqual(
      ok({ message: 'Eliminado correctamente' }),
    )
    expect(await send('GET', `/api/permisos/mis-permisos/${id}`)).toEqual(ok({ permisos: {} }))
    expect(await send('GET', `/api/permisos/por-perfil/${id}`)).toEqual(ok({ data: [] }))
    expect(await send('PUT', `/api/modulo/${id}`, '{"strNombreModulo":"x"}')).toEqual(ok({}))
    expect(await send('PUT', `/api/usuario/${id}`, usuario('1'))).toEqual(ok({}))
    if (!id.startsWith('-')) {
      expect(await send('GET', `/api/perfil?page=${id}`)).toEqual(ok({ data: [], totalPages: 1 }))
    }
  })

  it.each(['0', '-0', '0e9', '1.5', 'abc', 'NaN', '%20', '%00', '1%00', 'null', '1,2'])(
    'are invalid in a path: %s',
    async (id) => {
      const invalid = A(400, 'ID de perfil inválido')
      expect(await send('GET', `/api/permisos/por-perfil/${id}`)).toEqual(invalid)
      expect(await send('PUT', `/api/perfil/${id}`, 'null')).toEqual(invalid)
      expect(await send('PUT', `/api/modulo/${id}`, 'null')).toEqual(
        B(200, 'ID de módulo inválido.'),
      )
      expect(await send('PUT', `/api/usuario/${id}`, '[]')).toEqual(
        A(400, 'ID de usuario inválido'),
      )
      expect(await send('DELETE', `/api/permisos/${id}`)).toEqual(A(400, 'ID de permiso inválido'))
    },
  )

  it('are no reason to answer 500 when the path cannot even be decoded', async () => {
    for (const id of ['%', '%ff', '%E0%A4%A', '1%']) {
      expect(await send('GET', `/api/permisos/por-perfil/${id}`)).toEqual({
        status: 400,
        body: { statusCode: 400, message: expect.any(String) },
      })
    }
  })
})

describe('any value in any field', () => {
  const VALUES = ['null', 'true', '[]', '[1]', '{}', '1e400', '1.5', '""', '"\\u0000"', '"\\ud800"']
  const WITH_BODIES = ENDPOINTS.filter(([, , body]) => body)
  const FIELDS = {
    strNombreUsuario: '"u"',
    idPerfil: '1',
    strPwd: '"x"',
    strCorreo: '"u@y.zz"',
    strNumeroCelular: '"1"',
    idEstadoUsuario: 'true',
    imagenBase64: JSON.stringify(PNG),
    strNombrePerfil: '"p"',
    bitAdministrador: 'true',
    strNombreModulo: '"m"',
    idModulo: '1',
    bitAgregar: 'true',
    permisos: '[{"idModulo":1,"bitEditar":false}]',
    captchaToken: '"t"',
  }

  it.each(Object.keys(FIELDS))('gives no unexpected failure: %s', async (field) => {
    for (const value of [...VALUES, `${'['.repeat(2000)}${']'.repeat(2000)}`]) {
      const pairs = Object.entries({ ...FIELDS, [field]: value }).map((pair) => pair.join(':'))
      const body = `{${pairs.map((pair) => pair.replace(/^\w+/, '"$&"')).join(',')}}`
      for (const [method, path] of WITH_BODIES) {
        const answer = await send(method, path.replace(/\d+$/, '1000000'), body)
        const known = [200, 400, 401, 404, 409].includes(answer.status ?? 0)
        if (!known) expect(FAILURES, `${method} ${path} ${body}`).toContainEqual(answer)
      }
    }
    await test.app.sql`delete from usuario where id > 1`
    await test.app.sql`delete from permisos_perfil`
    await test.app.sql`delete from modulo where id > 4`
  })
  /** The 500s that the contract and the decisions give to faulty input. */
  const FAILURES = [
    A(500, 'Error al guardar en base de datos'),
    A(500, 'El perfil indicado no existe'),
    A(500, 'El nombre de usuario ya está registrado'),
    A(500, 'El correo electrónico ya está registrado'),
  ]
})
