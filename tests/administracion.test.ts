import { beforeEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../src/config.js'
import { ensureAdministrador } from '../src/usuario/administrador.js'
import { ADMIN, PNG, testApp } from './app.js'

const service = await testApp()
const { app, call, login, images } = service
const { sql } = app

const FORBIDDEN = { statusCode: 403, message: 'No tiene permiso para realizar esta acción' }
const ELIMINADO = { success: true, message: 'Eliminado correctamente' }

let turn = 0
let perfil: number
beforeEach(async () => {
  turn += 1
  perfil = (await create('perfil', { strNombrePerfil: `perfil ${turn}` })).id
})

const create = async (resource: string, body: object) => {
  const answer = await call('POST', `/api/${resource}`, body)
  expect(answer).toMatchObject({ status: 200, body: { success: true } })
  return answer.body.data
}
const usuario = (name: string, extra: object = {}) => ({
  strNombreUsuario: `${name}${turn}`,
  idPerfil: perfil,
  strPwd: ADMIN.strPwd,
  strCorreo: `${name}${turn}@x.es`,
  ...extra,
})
const answerOf = async (...request: Parameters<typeof call>) => {
  const { status, body } = await call(...request)
  return { status, body }
}
const matriz = (idPerfil: number, permisos: object[]) =>
  call('POST', '/api/permisos/guardar-matriz', { idPerfil, permisos })
const ID = { USUARIO: 1, PERFIL: 2, MODULO: 3, PERMISOS: 4 }

describe('GET /api/usuario', () => {
  it('pages, newest first, without the hash and with the name of the profile', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await create('usuario', usuario(name))
    const filter = `idPerfil=${perfil}`
    const first = await answerOf('GET', `/api/usuario?${filter}`)
    expect(first).toMatchObject({ status: 200, body: { success: true, totalPages: 2 } })
    expect(first.body.data.map((row: any) => row.strNombreUsuario)).toEqual(
      ['f', 'e', 'd', 'c', 'b'].map((name) => `${name}${turn}`),
    )
    const { data } = (await answerOf('GET', `/api/usuario?${filter}&page=2`)).body
    expect(data).toEqual([
      {
        id: expect.any(Number),
        strNombreUsuario: `a${turn}`,
        idPerfil: perfil,
        strCorreo: `a${turn}@x.es`,
        strNumeroCelular: null,
        idEstadoUsuario: true,
        imagenUrl: null,
        nombrePerfil: `perfil ${turn}`,
      },
    ])
  })

  it('filters by name or email, profile and state; empty filters are none', async () => {
    await create('usuario', usuario('Ñandú'))
    await create('usuario', usuario('otra', { strCorreo: `x_ñandú${turn}@x.es` }))
    await create('usuario', usuario('inactiva', { idEstadoUsuario: false }))
    const names = async (query: string) => {
      const { body } = await call('GET', `/api/usuario?idPerfil=${perfil}&${query}`)
      return body.data.map((row: any) => row.strNombreUsuario.replace(/\d+/, ''))
    }
    expect(await names(`search=${encodeURIComponent('ñANDÚ')}`)).toEqual(['otra', 'Ñandú'])
    expect(await names('search=_')).toEqual(['otra'])
    expect(await names('estado=false')).toEqual(['inactiva'])
    expect(await names('estado=&search=&page=')).toEqual(['inactiva', 'otra', 'Ñandú'])
    const all = await call('GET', '/api/usuario?idPerfil=')
    expect(all.body.data.length).toBeGreaterThan(2)
    expect(await answerOf('GET', '/api/usuario?idPerfil=99999999999')).toEqual({
      status: 200,
      body: { success: true, data: [], totalPages: 0 },
    })
  })

  it.each([
    ['idPerfil=x', 'El campo idPerfil debe ser un número entero distinto de 0'],
    ['estado=si', 'El campo estado debe ser true o false'],
    ['page=0', 'El campo page debe ser un entero mayor o igual a 1'],
  ])('refuses ?%s', async (query, message) => {
    expect(await answerOf('GET', `/api/usuario?${query}`)).toEqual({
      status: 400,
      body: { statusCode: 400, message },
    })
  })
})

describe('GET and DELETE /api/usuario/:id', () => {
  it('gives one user, and 404 or 400 for what is none', async () => {
    const { id } = await create('usuario', usuario('ana'))
    expect(await answerOf('GET', `/api/usuario/${id}`)).toEqual({
      status: 200,
      body: {
        success: true,
        data: {
          id,
          strNombreUsuario: `ana${turn}`,
          idPerfil: perfil,
          strCorreo: `ana${turn}@x.es`,
          strNumeroCelular: null,
          idEstadoUsuario: true,
          imagenUrl: null,
          nombrePerfil: `perfil ${turn}`,
        },
      },
    })
    expect(await answerOf('GET', '/api/usuario/999999')).toEqual({
      status: 404,
      body: { statusCode: 404, message: 'Usuario no encontrado' },
    })
    for (const method of ['GET', 'DELETE'] as const) {
      expect(await answerOf(method, '/api/usuario/0')).toEqual({
        status: 400,
        body: { statusCode: 400, message: 'ID de usuario inválido' },
      })
    }
  })

  it('deletes a user with the hosted image, any number of times', async () => {
    const { id } = await create('usuario', usuario('ana', { imagenBase64: PNG }))
    const { publicId } = images.uploads.at(-1) ?? {}
    expect(await answerOf('DELETE', `/api/usuario/${id}`)).toEqual({ status: 200, body: ELIMINADO })
    expect(await answerOf('DELETE', `/api/usuario/${id}`)).toEqual({ status: 200, body: ELIMINADO })
    expect((await call('GET', `/api/usuario/${id}`)).status).toBe(404)
    await expect.poll(() => images.destroyed).toContain(publicId)
  })

  it('removes a replaced image, but none that the service has not uploaded', async () => {
    const edit = (id: number, imagenBase64?: string) =>
      call('PUT', `/api/usuario/${id}`, { ...usuario('ana'), idEstadoUsuario: true, imagenBase64 })
    const { id } = await create('usuario', usuario('ana', { imagenBase64: PNG }))
    const { publicId } = images.uploads.at(-1) ?? {}
    const foreign = await create('usuario', usuario('eva'))
    await sql`update usuario set "imagenUrl" = 'https://otro/x.png' where id = ${foreign.id}`
    const before = images.destroyed.length
    await edit(id)
    await call('DELETE', `/api/usuario/${foreign.id}`)
    await edit(id, PNG)
    await expect.poll(() => images.destroyed.slice(before)).toEqual([publicId])
    expect(service.readLog()).not.toContain('image not removed')
  })

  it('refuses to delete one’s own user', async () => {
    expect(await answerOf('DELETE', '/api/usuario/1')).toEqual({
      status: 409,
      body: { statusCode: 409, message: 'No puede eliminar su propio usuario' },
    })
  })
})

describe('POST and DELETE /api/perfil', () => {
  it('creates a profile, an administrator with every module', async () => {
    const name = { strNombrePerfil: `otro ${turn}` }
    expect(await create('perfil', name)).toEqual({
      id: expect.any(Number),
      ...name,
      bitAdministrador: false,
    })
    const { id } = await create('perfil', { ...name, bitAdministrador: true })
    const { data } = (await call('GET', `/api/permisos/por-perfil/${id}`)).body
    const modulos = (await call('GET', '/api/modulo/list')).body.data
    expect(data.map((row: any) => row.idModulo)).toEqual(modulos.map((row: any) => row.id))
    expect(data.every((row: any) => row.bitAgregar && row.bitDetalle)).toBe(true)
  })

  it.each([
    [{}, 'El nombre es obligatorio'],
    [{ strNombrePerfil: ' ' }, 'El nombre es obligatorio'],
    [
      { strNombrePerfil: 'x', bitAdministrador: 'true' },
      'El campo bitAdministrador debe ser booleano',
    ],
  ])('refuses %j', async (body, message) => {
    expect(await answerOf('POST', '/api/perfil', body)).toEqual({
      status: 400,
      body: { statusCode: 400, message },
    })
  })

  it('deletes a profile with its records, unless users have it', async () => {
    await matriz(perfil, [{ idModulo: ID.MODULO }])
    const { id } = await create('usuario', usuario('ana'))
    expect(await answerOf('DELETE', `/api/perfil/${perfil}`)).toEqual({
      status: 409,
      body: { statusCode: 409, message: 'El perfil está asignado a usuarios' },
    })
    await call('DELETE', `/api/usuario/${id}`)
    for (const _again of [1, 2]) {
      expect(await answerOf('DELETE', `/api/perfil/${perfil}`)).toEqual({
        status: 200,
        body: ELIMINADO,
      })
    }
    expect((await call('GET', `/api/permisos/por-perfil/${perfil}`)).body.data).toEqual([])
    expect(await answerOf('DELETE', '/api/perfil/x')).toEqual({
      status: 400,
      body: { statusCode: 400, message: 'ID de perfil inválido' },
    })
  })

  it('leaves no user without a profile when both are asked for at once', async () => {
    const tries = Array.from({ length: 16 }, (_, i) => i)
    const perfiles = await Promise.all(
      tries.map((i) => create('perfil', { strNombrePerfil: `fugaz ${turn} ${i}` })),
    )
    const { id } = await create('usuario', usuario('ana'))
    await Promise.all(
      perfiles.map(async ({ id: idPerfil }) => {
        const edited = { ...usuario('ana'), idPerfil, idEstadoUsuario: true }
        const [moved, deleted] = await Promise.all([
          answerOf('PUT', `/api/usuario/${id}`, edited),
          answerOf('DELETE', `/api/perfil/${idPerfil}`),
        ])
        expect([200, 409]).toContain(deleted.status)
        if (moved.status !== 200) expect(moved.body.message).toBe('El perfil indicado no existe')
      }),
    )
    expect((await call('GET', `/api/usuario/${id}`)).status).toBe(200)
  })
})

describe('DELETE /api/modulo/:id', () => {
  it('deletes a module with its records', async () => {
    const { id } = await create('modulo', { strNombreModulo: `fugaz ${turn}` })
    await matriz(perfil, [{ idModulo: id, bitConsulta: true }])
    for (const _again of [1, 2]) {
      expect(await answerOf('DELETE', `/api/modulo/${id}`)).toEqual({
        status: 200,
        body: ELIMINADO,
      })
    }
    expect((await call('GET', `/api/permisos/por-perfil/${perfil}`)).body.data).toEqual([])
  })

  it.each([
    ['x', 'ID de módulo inválido.'],
    [ID.PERMISOS, 'No se puede eliminar un módulo del sistema.'],
  ])('refuses %s', async (id, message) => {
    expect(await answerOf('DELETE', `/api/modulo/${id}`)).toEqual({
      status: 200,
      body: { success: false, message },
    })
  })

  it('does not deadlock with replaces that name the module', async () => {
    const { id } = await create('modulo', { strNombreModulo: `disputado ${turn}` })
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        i === 12
          ? call('DELETE', `/api/modulo/${id}`)
          : matriz(i % 2 ? perfil : 1, [{ idModulo: id }, { idModulo: ID.PERFIL }]),
      ),
    )
    expect(answers[12]).toMatchObject({ status: 200, body: ELIMINADO })
    expect(service.readLog()).not.toContain('deadlock')
  })
})

describe('POST /api/auth/logout', () => {
  it('ends every token of the user, and clears the cookie', async () => {
    await create('usuario', usuario('ana'))
    const tokens = [
      await login(`ana${turn}`, ADMIN.strPwd),
      await login(`ana${turn}`, ADMIN.strPwd),
    ]
    const out = await call('POST', '/api/auth/logout', undefined, { token: tokens[0] as string })
    expect(out).toMatchObject({
      status: 200,
      body: { success: true, message: 'Sesión cerrada correctamente' },
      headers: {
        'set-cookie': expect.stringMatching(/^auth_token=; Max-Age=0; Path=\/; /),
      },
    })
    for (const token of tokens as string[]) {
      expect((await call('GET', '/api/perfil/list', undefined, { token })).status).toBe(401)
    }
    const token = await login(`ana${turn}`, ADMIN.strPwd)
    expect((await call('GET', '/api/perfil/list', undefined, { token })).status).toBe(200)
  })
})

describe('who may', () => {
  it('keep the rules: nobody reaches a profile that holds more', async () => {
    const fuerte = await create('perfil', { strNombrePerfil: `fuerte ${turn}` })
    const modulo = await create('modulo', { strNombreModulo: `nomina ${turn}` })
    await matriz(fuerte.id, [{ idModulo: modulo.id, bitConsulta: true }])
    const todas = { bitAgregar: true, bitConsulta: true, bitEliminar: true, bitDetalle: true }
    await matriz(
      perfil,
      Object.values(ID).map((idModulo) => ({ idModulo, ...todas })),
    )
    const yo = await create('usuario', usuario('yo'))
    const otra = await create('usuario', usuario('otra'))
    const victima = await create('usuario', usuario('victima', { idPerfil: fuerte.id }))
    const token = await login(`yo${turn}`, ADMIN.strPwd)
    const as = (method: any, url: any, body?: any) => answerOf(method, url, body, { token })

    for (const [method, url, body] of [
      ['GET', `/api/usuario/${victima.id}`],
      ['DELETE', `/api/usuario/${victima.id}`],
      ['DELETE', `/api/perfil/${fuerte.id}`],
      ['DELETE', `/api/modulo/${modulo.id}`],
      ['POST', '/api/perfil', { strNombrePerfil: 'x', bitAdministrador: true }],
    ] as const) {
      expect(await as(method, url, body)).toEqual({ status: 403, body: FORBIDDEN })
    }
    expect((await as('GET', `/api/usuario/${otra.id}`)).status).toBe(200)
    expect((await as('DELETE', `/api/usuario/${otra.id}`)).status).toBe(200)
    expect((await as('POST', '/api/perfil', { strNombrePerfil: 'x' })).status).toBe(200)

    await matriz(perfil, [])
    expect((await as('GET', `/api/usuario/${yo.id}`)).status).toBe(200)
    for (const [method, url, body] of [
      ['GET', '/api/usuario'],
      ['GET', `/api/usuario/${victima.id}`],
      ['DELETE', `/api/usuario/${victima.id}`],
      ['POST', '/api/perfil', { strNombrePerfil: 'x' }],
      ['DELETE', `/api/perfil/${fuerte.id}`],
      ['DELETE', `/api/modulo/${modulo.id}`],
    ] as const) {
      expect(await as(method, url, body)).toEqual({ status: 403, body: FORBIDDEN })
    }
  })

  it('is for the client to decide in client mode, but for one’s own user', async () => {
    const open = await testApp({
      AUTHORIZATION: 'client',
      DATABASE_URL: service.config.databaseUrl,
    })
    const yo = await create('usuario', usuario('yo'))
    const token = await login(`yo${turn}`, ADMIN.strPwd)
    const admin = { strNombrePerfil: 'x', bitAdministrador: true }
    expect((await open.call('POST', '/api/perfil', admin, { token })).status).toBe(200)
    expect((await open.call('GET', '/api/usuario/1', undefined, { token })).status).toBe(200)
    const own = await open.call('DELETE', `/api/usuario/${yo.id}`, undefined, { token })
    expect(own.status).toBe(409)
  })
})

describe('the administrator of ADMIN_*', () => {
  const ensure = (changes: object = {}) => ensureAdministrador(app, { ...ADMIN, ...changes })

  it('is told of in the log, set up or not', async () => {
    expect(service.readLog()).toContain(
      '"strNombreUsuario":"raiz","msg":"administrator set up from ADMIN_*"',
    )
    await ensure({ strPwd: 'otra clave' })
    expect(service.readLog()).toContain(
      '"msg":"an active administrator exists: ADMIN_* is ignored"',
    )
    expect(await login(ADMIN.strNombreUsuario, ADMIN.strPwd)).toEqual(expect.any(String))
  })

  it('is refused what another user has, and any other failure is passed on', async () => {
    await create('usuario', usuario('eva'))
    await sql`update usuario set "idEstadoUsuario" = false where id = 1`
    const taken = [
      [
        { strNombreUsuario: 'nueva', strCorreo: `eva${turn}@X.es` },
        'ADMIN_EMAIL: another user has it',
      ],
      [
        { strNombreUsuario: `EVA${turn}`, strCorreo: 'nueva@x.es' },
        'ADMIN_USERNAME: another user has it, in other upper or lower case',
      ],
    ] as const
    for (const [changes, message] of taken) {
      await expect(ensure(changes)).rejects.toEqual(new ConfigError(message))
    }
    await expect(ensure({ strNombreUsuario: 'x\0' })).rejects.toMatchObject({
      name: 'PostgresError',
      code: '22021',
    })
    await sql`update usuario set "idEstadoUsuario" = true where id = 1`
  })
})
