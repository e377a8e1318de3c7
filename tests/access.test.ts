import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { FORBIDDEN, statusCodeAnswer, UNAUTHENTICATED, withoutHeaders } from './answers.js'
import { ADMIN, PNG, testApp } from './app.js'
import {
  addressOf,
  ENDPOINT_NAMES,
  endpoint,
  FLAGS,
  type Flag,
  type Method,
  SYSTEM_MODULES,
  usuario,
} from './endpoints.js'
import { insertModulo, insertPerfil, insertPermiso, insertUsuario, readTables } from './tables.js'

/** An id that no row has. */
const UNKNOWN_ID = 999_999

const service = await testApp()
const { app, call, sql } = service

/** The profiles, users and modules that a test attacks. Each test has new ones. */
let world: Awaited<ReturnType<typeof makeWorld>>
let turn = 0

async function makeWorld() {
  turn += 1
  const perfil = (nombre: string, administrador = false) =>
    insertPerfil(sql, `${nombre} ${turn}`, administrador)
  const modulo = (nombre: string) => insertModulo(sql, `${nombre} ${turn}`)
  const insertar = (nombre: string, idPerfil: number) =>
    insertUsuario(sql, `${nombre}${turn}`, idPerfil)

  const [propio, debil, fuerte, administrador] = await Promise.all([
    perfil('propio'),
    perfil('debil'),
    perfil('fuerte'),
    perfil('administrador', true),
  ])
  const [ventas, nomina, libre] = await Promise.all([
    modulo('VENTAS'),
    modulo('NOMINA'),
    modulo('LIBRE'),
  ])
  for (const name of SYSTEM_MODULES) await grant(propio, await moduloId(name), ...FLAGS)
  await grant(propio, ventas, 'bitConsulta', 'bitEditar')
  const deDebil = await grant(debil, ventas, 'bitConsulta')
  const deFuerte = await grant(fuerte, nomina, 'bitConsulta')
  const [yo, victima] = await Promise.all([insertar('yo', propio), insertar('victima', fuerte)])
  // A signed token like that of a login saves the time for the password hash.
  const token = app.jwt.sign({ id: yo, idPerfil: propio, nombre: `yo${turn}` } as never)
  return {
    ...{ propio, debil, fuerte, administrador, ventas, nomina, libre },
    ...{ deDebil, deFuerte, yo, victima, token },
  }
}

async function moduloId(name: string) {
  const [row] = await sql<{ id: number }[]>`select id from modulo where "strNombreModulo" = ${name}`
  return row?.id as number
}

/** Adds a permission record and returns its id. */
const grant = (idPerfil: number, idModulo: number, ...granted: Flag[]) =>
  insertPermiso(sql, idPerfil, idModulo, ...granted)

const attack = async (method: Method, url: string, body?: unknown) =>
  withoutHeaders(await call(method, url, body, { token: world.token }))

/**
 * Expects that the attacker's request is answered with 403, which says what is lacking, and changes
 * no row.
 */
async function expectRefused(method: Method, url: string, body?: unknown) {
  const before = await readTables(sql)
  const { headers, ...answer } = await call(method, url, body, { token: world.token })
  expect(answer).toEqual(FORBIDDEN)
  expect(headers['x-needs']).toMatch(/^(administrador|[^:]+:bit[A-Z]\w+)$/)
  expect(await readTables(sql)).toEqual(before)
}

const editado = (idPerfil: number, changes: object = {}) =>
  usuario(`editado${turn}`, { idPerfil, strPwd: undefined, ...changes })

beforeEach(async () => {
  world = await makeWorld()
})

describe('the permission of each endpoint', () => {
  const NEEDS = ENDPOINT_NAMES.map((name) => [name, endpoint(name).needs] as const)
  const GUARDED = NEEDS.filter(([, needs]) => needs.includes(' '))
  const FOR_ADMINISTRATORS = NEEDS.filter(([, needs]) => needs === 'administrador')
  const OPEN = ENDPOINT_NAMES.filter(
    (name) =>
      endpoint(name).isOpenToOwner ||
      (name.startsWith('GET') && endpoint(name).needs === 'session'),
  )

  it.each(GUARDED)('%s answers 403 when the caller’s profile lacks %s', async (name, needs) => {
    const [modulo = '', accion = ''] = needs.split(' ')
    const { method, url } = addressOf(name, name.endsWith(':idPerfil') ? world.debil : UNKNOWN_ID)
    const request = [method, url, method === 'GET' ? undefined : {}] as const

    expect((await attack(...request)).status).not.toBe(403)
    await sql`update permisos_perfil set ${sql({ [accion]: false })}
      where "idPerfil" = ${world.propio} and "idModulo" = ${await moduloId(modulo)}`
    const refused = await call(...request, { token: world.token })
    expect(withoutHeaders(refused)).toEqual(FORBIDDEN)
    expect(refused.headers['x-needs']).toBe(`${modulo}:${accion}`)
  })

  it.each(FOR_ADMINISTRATORS)('%s answers 403 to all but administrators', async (name) => {
    const { method, url } = addressOf(name)
    expect(await attack(method, url)).toEqual(FORBIDDEN)
  })

  it.each(OPEN)('%s needs no permission, or none for the user’s own record', async (name) => {
    await sql`delete from permisos_perfil where "idPerfil" = ${world.propio}`
    const { method, url } = addressOf(name, name.endsWith(':idPerfil') ? world.propio : world.yo)
    expect(await attack(method, url)).toMatchObject({ status: 200, body: { success: true } })
  })

  it('answers 401 without a session at every endpoint but the login', async () => {
    const guarded = NEEDS.filter(([, needs]) => needs !== 'nothing').map(([name]) => name)
    expect(guarded.length).toBeGreaterThan(20)
    for (const name of guarded) {
      const { method, url } = addressOf(name, 1)
      const answer = await call(method, url, undefined, { token: null })
      expect({ name, ...withoutHeaders(answer) }).toEqual({ name, ...UNAUTHENTICATED })
    }
  })
})

describe('rule 1: permission records', () => {
  it('answers 403 to any write that would grant a flag that the caller does not hold', async () => {
    const { debil, propio, nomina, deDebil } = world
    const entry = { idModulo: nomina, bitConsulta: true }
    await expectRefused('POST', '/api/permisos', { idPerfil: propio, ...entry })
    await expectRefused('PUT', `/api/permisos/${deDebil}`, { idPerfil: debil, ...entry })
    const matriz = { idPerfil: propio, permisos: [entry] }
    await expectRefused('POST', '/api/permisos/guardar-matriz', matriz)
  })

  it.each(FLAGS)('answers 403 when %s is all that the caller’s profile lacks', async (flag) => {
    const { propio, debil, nomina } = world
    const others = FLAGS.filter((other) => other !== flag)
    await grant(propio, nomina, ...others)
    const matriz = (flags: Flag[]) => {
      const entry = Object.fromEntries(flags.map((name) => [name, true]))
      return { idPerfil: debil, permisos: [{ idModulo: nomina, ...entry }] }
    }
    const url = '/api/permisos/guardar-matriz'
    await expectRefused('POST', url, matriz([flag]))
    expect((await attack('POST', url, matriz(others))).status).toBe(200)

    await sql`delete from permisos_perfil where "idPerfil" = ${debil}`
    await grant(debil, nomina, flag)
    await expectRefused('POST', url, matriz([]))
  })

  it('answers 403 when the profile to be written or deleted holds more than the caller’s', async () => {
    const { fuerte, administrador, debil, ventas, nomina, libre, deDebil, deFuerte } = world
    const url = '/api/permisos/guardar-matriz'
    for (const idPerfil of [fuerte, administrador]) {
      await expectRefused('POST', url, { idPerfil })
      const desconocidos = [{ idModulo: 3e9 }, { idModulo: 4e9 }]
      await expectRefused('POST', url, { idPerfil, permisos: desconocidos })
      await expectRefused('POST', '/api/permisos', { idPerfil, idModulo: libre })
      await expectRefused('PUT', `/api/permisos/${deDebil}`, { idPerfil, idModulo: ventas })
      await expectRefused('DELETE', `/api/perfil/${idPerfil}`)
    }
    await expectRefused('DELETE', `/api/permisos/${deFuerte}`)
    const moved = { idPerfil: debil, idModulo: nomina }
    await expectRefused('PUT', `/api/permisos/${deFuerte}`, moved)
  })

  it('answers 403 when a module would be deleted for which a stronger profile has a record, also if it is a system module', async () => {
    await expectRefused('DELETE', `/api/modulo/${world.nomina}`)
    await grant(world.fuerte, await moduloId('USUARIO'), ...FLAGS)
    await expectRefused('DELETE', `/api/modulo/${await moduloId('USUARIO')}`)
  })

  it('reports an unknown idPerfil or idModulo of a record, and repeated or too many entries of a matrix, before it answers 403', async () => {
    const { debil, fuerte, ventas } = world
    for (const permiso of [
      { idPerfil: fuerte, idModulo: UNKNOWN_ID },
      { idPerfil: debil, idModulo: UNKNOWN_ID, bitConsulta: true },
      { idPerfil: UNKNOWN_ID, idModulo: ventas, bitEliminar: true },
    ]) {
      const unknown = statusCodeAnswer(400, 'El perfil o el módulo no existe')
      expect(await attack('POST', '/api/permisos', permiso)).toEqual(unknown)
    }

    // The profile has a record for the module already, but the 403 comes first.
    const beyond = { idPerfil: debil, idModulo: ventas, bitEliminar: true }
    await expectRefused('POST', '/api/permisos', beyond)
    await expectRefused('PUT', `/api/permisos/${UNKNOWN_ID}`, beyond)
    const matriz = (idModulo: number) => ({
      idPerfil: debil,
      permisos: [{ idModulo: ventas }, { ...beyond, idModulo }],
    })
    await expectRefused('POST', '/api/permisos/guardar-matriz', matriz(UNKNOWN_ID))
    const tooMany = Array.from({ length: 10_001 }, (_, n) => ({ ...beyond, idModulo: n + 1 }))
    const most = { idPerfil: debil, permisos: tooMany.slice(1) }
    await expectRefused('POST', '/api/permisos/guardar-matriz', most)
    for (const body of [matriz(ventas), { idPerfil: debil, permisos: tooMany }]) {
      const answer = await attack('POST', '/api/permisos/guardar-matriz', body)
      expect(answer).toEqual(endpoint('POST /api/permisos/guardar-matriz').unexpected)
    }
  })

  it('reports an invalid body before one of the four rules refuses the write', async () => {
    const { withoutFields } = endpoint('PUT /api/usuario/:id')
    expect(await attack('PUT', `/api/usuario/${world.victima}`, {})).toEqual(withoutFields)
  })

  it('lets callers grant and revoke flags that their own profile holds, also of their own profile', async () => {
    const { propio, debil, ventas, deDebil } = world
    const entry = { idModulo: ventas, bitEditar: true }
    const url = `/api/permisos/${deDebil}`
    expect((await attack('PUT', url, { idPerfil: debil, ...entry })).status).toBe(200)
    expect((await attack('DELETE', url)).status).toBe(200)
    const propia = { idPerfil: propio, permisos: [entry] }
    expect((await attack('POST', '/api/permisos/guardar-matriz', propia)).status).toBe(200)
  })
})

describe('rule 2: users', () => {
  const nuevo = (idPerfil: number) => usuario(`nuevo${turn}`, { idPerfil })

  const taken = { strCorreo: ADMIN.strCorreo, strNombreUsuario: ADMIN.strNombreUsuario }

  it('answers 403, even to a taken name and email, when a user would get a profile that holds more than the caller’s', async () => {
    for (const idPerfil of [world.fuerte, world.administrador]) {
      await expectRefused('POST', '/api/usuario', { ...nuevo(idPerfil), ...taken })
      await expectRefused('PUT', `/api/usuario/${world.yo}`, editado(idPerfil, taken))
    }
  })

  it('answers 403, even to a taken name or an unknown profile, when the user to be read, edited or deleted has a profile that holds more than the caller’s', async () => {
    const url = `/api/usuario/${world.victima}`
    await expectRefused('PUT', url, editado(world.propio, taken))
    await expectRefused('PUT', url, editado(999_999))
    await expectRefused('GET', url)
    await expectRefused('DELETE', url)
  })

  it('lists every user, also those whose profile holds more than the caller’s', async () => {
    expect(await attack('GET', `/api/usuario?search=victima${turn}`)).toMatchObject({
      status: 200,
      body: { data: [{ id: world.victima, idPerfil: world.fuerte }] },
    })
  })

  it('hashes no password and uploads no image when it answers 403', async () => {
    const hash = vi.spyOn(service.passwords, 'hash')
    onTestFinished(() => hash.mockRestore())
    const uploads = service.images.uploads.length
    const secret = editado(world.fuerte, { strPwd: 'tomada' })
    await expectRefused('PUT', `/api/usuario/${world.victima}`, secret)
    await expectRefused('POST', '/api/usuario', { ...nuevo(world.fuerte), imagenBase64: PNG })
    const stolen = editado(world.fuerte, { imagenBase64: PNG })
    await expectRefused('PUT', `/api/usuario/${world.victima}`, stolen)
    expect(service.images.uploads.length).toBe(uploads)
    expect(hash).not.toHaveBeenCalled()
  })

  it('answers 403 when the profile comes to hold more while the password is hashed', async () => {
    const before = await sql`select id from usuario order by id`
    const hash = vi.spyOn(service.passwords, 'hash').mockImplementationOnce(async () => {
      await grant(world.debil, world.nomina, 'bitConsulta')
      return 'hash'
    })
    onTestFinished(() => hash.mockRestore())
    expect(await attack('POST', '/api/usuario', nuevo(world.debil))).toEqual(FORBIDDEN)
    expect(hash).toHaveBeenCalledOnce()
    expect(await sql`select id from usuario order by id`).toEqual(before)
  })

  it('lets the caller create and edit users whose profile holds no more than the caller’s', async () => {
    const { body } = await attack('POST', '/api/usuario', nuevo(world.debil))
    expect(body).toMatchObject({ success: true, data: { idPerfil: world.debil } })
    const moved = await attack('PUT', `/api/usuario/${body.data.id}`, editado(world.propio))
    expect(moved).toMatchObject({ status: 200, body: { data: { idPerfil: world.propio } } })
  })
})

describe('rule 3: the administrator flag', () => {
  it('answers 403 when a caller without the flag sets or clears it on any profile', async () => {
    const set = { strNombrePerfil: 'x', bitAdministrador: true }
    await expectRefused('PUT', `/api/perfil/${world.propio}`, set)
    await expectRefused('POST', '/api/perfil', set)
    // The name stays, because a change of the name would be refused, too.
    const clear = { strNombrePerfil: `administrador ${turn}`, bitAdministrador: false }
    await expectRefused('PUT', `/api/perfil/${world.administrador}`, clear)
  })
})

it('answers 403 when the caller renames a profile that holds more, which may be saved as it is', async () => {
  const rename = { strNombrePerfil: 'otro', bitAdministrador: false }
  await expectRefused('PUT', `/api/perfil/${world.fuerte}`, rename)
  const administrador = { ...rename, bitAdministrador: true }
  await expectRefused('PUT', `/api/perfil/${world.administrador}`, administrador)
  for (const id of [world.debil, world.propio]) {
    expect((await attack('PUT', `/api/perfil/${id}`, rename)).status).toBe(200)
  }
  const same = { ...rename, strNombrePerfil: `fuerte ${turn}` }
  expect((await attack('PUT', `/api/perfil/${world.fuerte}`, same)).status).toBe(200)
})

describe('rule 4: names of modules', () => {
  it('answers 403 when a system module or a module with records would be renamed', async () => {
    // Another module has this name, but the 403 comes first.
    const rename = { strNombreModulo: `NOMINA ${turn}` }
    await expectRefused('PUT', `/api/modulo/${world.ventas}`, rename)

    const id = await moduloId('USUARIO')
    await sql`delete from permisos_perfil where "idModulo" = ${id}`
    await expectRefused('PUT', `/api/modulo/${id}`, rename)
  })

  it.each([
    ' Permisos ',
    'ＰＥＲＭＩＳＯＳ',
    '\u2003MODULO',
    'USUªRIO',
    'USUARIO\u200b',
    'USU\u2028ARIO',
    'USU\uffffARIO',
    'USUARIO\ufe0f',
    'USUARIO\b',
  ])('answers 403 when a new module would get the name of a system module: %j', async (name) => {
    await expectRefused('POST', '/api/modulo', { strNombreModulo: name })
  })

  it('answers 403 for a system name even after an administrator renamed that module', async () => {
    const id = await moduloId('PERFIL')
    const rename = (strNombreModulo: string) =>
      call('PUT', `/api/modulo/${id}`, { strNombreModulo })
    expect((await rename('PERFIL DE ANTES')).status).toBe(200)
    await expectRefused('POST', '/api/modulo', { strNombreModulo: 'perfil' })
    await expectRefused('PUT', `/api/modulo/${world.libre}`, { strNombreModulo: 'ＰＥＲＦＩＬ' })
    expect((await rename('PERFIL')).status).toBe(200)
  })

  it('lets a module without records be renamed, and any module keep its own name', async () => {
    const renamed = { strNombreModulo: `nuevo ${turn}` }
    expect((await attack('PUT', `/api/modulo/${world.libre}`, renamed)).status).toBe(200)
    const same = { strNombreModulo: `VENTAS ${turn}` }
    expect((await attack('PUT', `/api/modulo/${world.ventas}`, same)).status).toBe(200)
  })
})

it('with AUTHORIZATION=client checks no permission and no rule for a user with a session, and answers 401 to a caller without one', async () => {
  const open = await testApp({
    AUTHORIZATION: 'client',
    DATABASE_URL: service.config.DATABASE_URL.url,
  })
  await sql`delete from permisos_perfil where "idPerfil" = ${world.propio}`
  const as = { token: world.token }
  for (const [method, url, body] of [
    ['GET', '/api/permisos'],
    ['GET', '/api/auditoria'],
    ['GET', `/api/usuario/${world.victima}`],
    // This makes the caller an administrator, so it comes last.
    ['PUT', `/api/perfil/${world.propio}`, { strNombrePerfil: 'x', bitAdministrador: true }],
  ] as const) {
    expect(await open.call(method, url, body, as)).toMatchObject({
      status: 200,
      body: { success: true },
    })
  }
  const nobody = await open.call('GET', '/api/permisos', undefined, { token: null })
  expect(withoutHeaders(nobody)).toEqual(UNAUTHENTICATED)
})
