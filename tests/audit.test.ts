import { describe, expect, it } from 'vitest'
import type { AnswerWithHeaders } from './answers.js'
import { ADMIN, PNG, testApp } from './app.js'
import { FLAGS, usuario } from './endpoints.js'

type Line = Record<string, any>

const { sql, call, readLog } = await testApp()

/** Returns the audit line of the request that was answered with `answer`. */
function lineOf({ headers }: AnswerWithHeaders): Line {
  const lines = readLog()
    .trim()
    .split('\n')
    .map((text): Line => JSON.parse(text))
  const own = lines.filter(({ msg, reqId }) => msg === 'audit' && reqId === headers['x-request-id'])
  expect(own).toHaveLength(1)
  return own[0] as Line
}

/**
 * Sends a write as the administrator and expects that it succeeds. Returns the answer and its
 * `data`, and the audit line and its `changes`.
 */
async function write(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: object) {
  const answer = await call(method, `/api/${path}`, body)
  expect(answer).toMatchObject({ status: 200, body: { success: true } })
  const line = lineOf(answer)
  expect(line).toMatchObject({ outcome: 'done', level: 35 })
  return { changes: line.changes, data: answer.body.data, line, answer }
}

let turn = 0
/** Adds a profile without permission records; returns its id. */
async function addPerfil(more: object = {}): Promise<number> {
  turn += 1
  const { data } = await write('POST', 'perfil', { strNombrePerfil: `Perfil ${turn}`, ...more })
  return data.id
}
/** Adds a module; returns its id and its name. */
async function addModulo(): Promise<{ id: number; nombre: string }> {
  turn += 1
  const { data } = await write('POST', 'modulo', { strNombreModulo: `VENTAS ${turn}` })
  return { id: data.id, nombre: data.strNombreModulo }
}

describe('the changes of a permission record', () => {
  it('name the flags of a record that is added', async () => {
    const idPerfil = await addPerfil()
    const { id: idModulo, nombre } = await addModulo()
    const permiso = { idPerfil, idModulo, bitEditar: true, bitConsulta: true }
    const { changes, data, line } = await write('POST', 'permisos', permiso)
    expect(changes).toEqual([
      { idPerfil, granted: { [nombre]: ['bitEditar', 'bitConsulta'] }, revoked: {} },
    ])
    expect(line).toMatchObject({ target: data.id, who: { nombre: ADMIN.strNombreUsuario } })
  })

  it('are an empty list when a write grants and revokes no flag', async () => {
    const idPerfil = await addPerfil()
    const { id: idModulo } = await addModulo()
    const added = await write('POST', 'permisos', { idPerfil, idModulo })
    expect(added.changes).toEqual([])
    const same = await write('PUT', `permisos/${added.data.id}`, { idPerfil, idModulo })
    expect(same.changes).toEqual([])
    expect((await write('DELETE', 'permisos/999999')).changes).toEqual([])
  })

  it('name the flags that an update grants and revokes, and those that a deletion revokes', async () => {
    const idPerfil = await addPerfil()
    const { id: idModulo, nombre } = await addModulo()
    const record = { idPerfil, idModulo }
    const { data } = await write('POST', 'permisos', {
      ...record,
      bitEditar: true,
      bitDetalle: true,
    })
    const path = `permisos/${data.id}`
    const changed = await write('PUT', path, { ...record, bitAgregar: true, bitDetalle: true })
    expect(changed.changes).toEqual([
      { idPerfil, granted: { [nombre]: ['bitAgregar'] }, revoked: { [nombre]: ['bitEditar'] } },
    ])
    expect(changed.line.target).toBe(data.id)
    const deleted = await write('DELETE', path)
    expect(deleted.changes).toEqual([
      { idPerfil, granted: {}, revoked: { [nombre]: ['bitAgregar', 'bitDetalle'] } },
    ])
  })

  it('have an entry for each of the two profiles if a record is moved between them', async () => {
    const from = await addPerfil()
    const to = await addPerfil()
    const modulo = await addModulo()
    const permiso = { idPerfil: from, idModulo: modulo.id, bitEditar: true }
    const { data } = await write('POST', 'permisos', permiso)
    const moved = await write('PUT', `permisos/${data.id}`, {
      ...permiso,
      idPerfil: to,
      bitConsulta: true,
    })
    expect(moved.changes).toEqual([
      { idPerfil: from, granted: {}, revoked: { [modulo.nombre]: ['bitEditar'] } },
      { idPerfil: to, granted: { [modulo.nombre]: ['bitEditar', 'bitConsulta'] }, revoked: {} },
    ])
  })

  it('have one entry with both modules if a record is moved between modules', async () => {
    const idPerfil = await addPerfil()
    const from = await addModulo()
    const to = await addModulo()
    const permiso = { idPerfil, idModulo: from.id, bitEditar: true }
    const { data } = await write('POST', 'permisos', permiso)
    const moved = await write('PUT', `permisos/${data.id}`, { ...permiso, idModulo: to.id })
    expect(moved.changes).toEqual([
      {
        idPerfil,
        granted: { [to.nombre]: ['bitEditar'] },
        revoked: { [from.nombre]: ['bitEditar'] },
      },
    ])
  })

  it('are missing in the audit line of a refused write', async () => {
    const idPerfil = await addPerfil()
    const answer = await call('POST', '/api/permisos', { idPerfil, idModulo: 999_999 })
    expect(answer.status).toBe(400)
    expect(lineOf(answer)).not.toHaveProperty('changes')
  })
})

describe('the changes of a matrix', () => {
  const guardar = (idPerfil: number, permisos: object[]) =>
    write('POST', 'permisos/guardar-matriz', { idPerfil, permisos })

  it('name only the flags that differ from the previous matrix', async () => {
    const idPerfil = await addPerfil()
    const ventas = await addModulo()
    const compras = await addModulo()
    const before = [
      { idModulo: ventas.id, bitConsulta: true },
      { idModulo: compras.id, bitConsulta: true },
    ]
    const first = await guardar(idPerfil, before)
    expect(first.changes).toEqual([
      {
        idPerfil,
        granted: { [ventas.nombre]: ['bitConsulta'], [compras.nombre]: ['bitConsulta'] },
        revoked: {},
      },
    ])
    expect(first.line.target).toBe(idPerfil)
    expect((await guardar(idPerfil, before)).changes).toEqual([])

    const after = [{ idModulo: ventas.id, bitConsulta: true, bitEditar: true }]
    expect((await guardar(idPerfil, after)).changes).toEqual([
      {
        idPerfil,
        granted: { [ventas.nombre]: ['bitEditar'] },
        revoked: { [compras.nombre]: ['bitConsulta'] },
      },
    ])
    expect((await guardar(idPerfil, [])).changes).toEqual([
      { idPerfil, granted: {}, revoked: { [ventas.nombre]: ['bitEditar', 'bitConsulta'] } },
    ])
  })

  it('are an empty list if no profile has the id', async () => {
    expect((await guardar(999_999, [])).changes).toEqual([])
  })

  it('name the flags of up to 200 modules, and count the flags of more modules', async () => {
    const idPerfil = await addPerfil()
    const modulos = await sql<{ id: number }[]>`
      insert into modulo ("strNombreModulo") select 'MUCHOS ' || n from generate_series(1, 201) as n
      returning id
    `
    const all = modulos.map(({ id }) => ({ idModulo: id, bitEditar: true, bitDetalle: true }))

    const [named] = (await guardar(idPerfil, all.slice(0, 200))).changes
    expect(Object.keys(named.granted)).toHaveLength(200)
    expect(named.granted['MUCHOS 200']).toEqual(['bitEditar', 'bitDetalle'])
    expect(named.revoked).toEqual({})

    expect((await guardar(idPerfil, [])).changes[0].granted).toEqual({})
    expect((await guardar(idPerfil, all)).changes).toEqual([{ idPerfil, granted: 402, revoked: 0 }])
    const other = all.map(({ idModulo }) => ({ idModulo, bitEditar: true, bitAgregar: true }))
    expect((await guardar(idPerfil, other)).changes).toEqual([
      { idPerfil, granted: 201, revoked: 201 },
    ])
    // The matrix has 201 modules, but only one of them changes, so its name is given.
    const [first, ...rest] = other
    const one = await guardar(idPerfil, [{ ...first, bitDetalle: true }, ...rest])
    expect(one.changes).toEqual([
      { idPerfil, granted: { 'MUCHOS 1': ['bitDetalle'] }, revoked: {} },
    ])
  })

  it('add up to the stored matrix when several matrices are saved at the same time', async () => {
    const idPerfil = await addPerfil()
    const modulo = await addModulo()
    const matrices = Array.from({ length: 32 }, (_, mask) => ({
      idModulo: modulo.id,
      ...Object.fromEntries(FLAGS.map((flag, bit) => [flag, ((mask >> bit) & 1) === 1])),
    }))
    const saved: Line[] = await Promise.all(matrices.map((matriz) => guardar(idPerfil, [matriz])))

    const balance: Line = Object.fromEntries(FLAGS.map((flag) => [flag, 0]))
    for (const { granted, revoked } of saved.flatMap(({ changes }) => changes)) {
      for (const flag of granted[modulo.nombre] ?? []) balance[flag] += 1
      for (const flag of revoked[modulo.nombre] ?? []) balance[flag] -= 1
    }
    const { permisos } = (await call('GET', `/api/permisos/mis-permisos/${idPerfil}`)).body
    const { nombreModulo: _, ...remaining } = permisos[modulo.nombre]
    const held = Object.entries(remaining).map(([flag, value]) => [flag, value ? 1 : 0])
    expect(balance).toEqual(Object.fromEntries(held))
  })
})

describe('the changes of a profile', () => {
  it('have the old and the new value of the name and of the administrator flag, if they differ', async () => {
    const perfil = { strNombrePerfil: 'A', bitAdministrador: false }
    const { changes, data } = await write('POST', 'perfil', perfil)
    expect(changes).toEqual({ strNombrePerfil: [null, 'A'], bitAdministrador: [null, false] })

    const path = `perfil/${data.id}`
    const renamed = { ...perfil, strNombrePerfil: 'B' }
    expect((await write('PUT', path, renamed)).changes).toEqual({ strNombrePerfil: ['A', 'B'] })
    expect((await write('PUT', path, renamed)).changes).toEqual({})
    const raised = { ...renamed, bitAdministrador: true }
    expect((await write('PUT', path, raised)).changes).toEqual({ bitAdministrador: [false, true] })
    expect((await write('DELETE', path)).changes).toEqual({
      strNombrePerfil: ['B', null],
      bitAdministrador: [true, null],
    })
    expect((await write('DELETE', path)).changes).toEqual({})
  })
})

describe('the changes of a module', () => {
  it('have the old and the new name, and for a deletion the number of profiles that lose a record', async () => {
    const { changes, data } = await write('POST', 'modulo', { strNombreModulo: 'uno' })
    expect(changes).toEqual({ strNombreModulo: [null, 'UNO'] })

    const path = `modulo/${data.id}`
    const dos = { strNombreModulo: 'DOS' }
    expect((await write('PUT', path, dos)).changes).toEqual({ strNombreModulo: ['UNO', 'DOS'] })
    expect((await write('PUT', path, dos)).changes).toEqual({})
    for (const idPerfil of [await addPerfil(), await addPerfil()]) {
      await write('POST', 'permisos', { idPerfil, idModulo: data.id })
    }
    expect((await write('DELETE', path)).changes).toEqual({
      strNombreModulo: ['DOS', null],
      perfiles: 2,
    })
    expect((await write('DELETE', path)).changes).toEqual({})
    expect((await write('PUT', path, dos)).changes).toEqual({})
  })
})

describe('the changes of a user', () => {
  it('have the old and the new value of three fields, but only the names of the other fields', async () => {
    const idPerfil = await addPerfil()
    const otro = await addPerfil()
    const same = usuario('ana', { idPerfil, strPwd: undefined, strNumeroCelular: '5512345678' })
    const sent = { ...same, strPwd: 'una clave', imagenBase64: PNG }
    const { changes, data } = await write('POST', 'usuario', sent)
    expect(changes).toEqual({
      strNombreUsuario: [null, 'ana'],
      idPerfil: [null, idPerfil],
      idEstadoUsuario: [null, true],
      changed: ['strPwd', 'strCorreo', 'strNumeroCelular', 'imagenUrl'],
    })

    const path = `usuario/${data.id}`
    expect((await write('PUT', path, same)).changes).toEqual({})
    const moved = { ...same, strNombreUsuario: 'eva', idPerfil: otro, idEstadoUsuario: false }
    expect((await write('PUT', path, moved)).changes).toEqual({
      strNombreUsuario: ['ana', 'eva'],
      idPerfil: [idPerfil, otro],
      idEstadoUsuario: [true, false],
    })
    const secret = { ...moved, strPwd: 'otra clave', strCorreo: 'otra@ejemplo.com' }
    expect((await write('PUT', path, secret)).changes).toEqual({ changed: ['strPwd', 'strCorreo'] })
    const silent = { ...moved, strCorreo: 'otra@ejemplo.com', strNumeroCelular: null }
    expect((await write('PUT', path, silent)).changes).toEqual({ changed: ['strNumeroCelular'] })
    expect((await write('DELETE', path)).changes).toEqual({
      strNombreUsuario: ['eva', null],
      idPerfil: [otro, null],
      idEstadoUsuario: [false, null],
      changed: ['strPwd', 'strCorreo', 'imagenUrl'],
    })
    expect((await write('PUT', path, silent)).changes).toEqual({})

    const values = [sent.strPwd, 'otra clave', '$2b$', 'ejemplo.com', '5512345678', data.imagenUrl]
    for (const value of values) expect(readLog()).not.toContain(value)
  })
})

describe('the audit line of a refused login', () => {
  const good = { ...ADMIN, captchaToken: 'humano' }
  const login = (body: object) => call('POST', '/api/auth/login', body, { token: null })

  it.each<[string, object, string, number | null]>([
    ['a captcha that fails', { ...good, captchaToken: 'rechazar' }, 'captcha', null],
    ['no captcha', ADMIN, 'captcha', null],
    ['no password', { ...good, strPwd: undefined }, 'missing', null],
    ['an unknown name', { ...good, strNombreUsuario: 'nadie' }, 'unknown', null],
    [
      'a name that nobody can have',
      { ...good, strNombreUsuario: 'x'.repeat(999) },
      'unknown',
      null,
    ],
    ['a wrong password', { ...good, strPwd: 'mala' }, 'password', 1],
    ['a password that nobody can have', { ...good, strPwd: 'x'.repeat(73) }, 'password', 1],
  ])('has the reason and the id of the user for %s', async (_, body, reason, target) => {
    expect(lineOf(await login(body))).toMatchObject({ reason, target })
  })

  it('distinguishes an inactive user from an unknown one, unlike the answer', async () => {
    const { data } = await write('POST', 'usuario', usuario('baja', { idEstadoUsuario: false }))
    const inactive = await login({ ...good, strNombreUsuario: 'baja' })
    const unknown = await login({ ...good, strNombreUsuario: 'nadie' })
    expect(lineOf(inactive)).toMatchObject({ reason: 'inactive', target: data.id })
    expect(inactive.body).toEqual(unknown.body)
    expect(inactive.status).toBe(unknown.status)
  })

  it('has no reason when the login succeeds or its body is not JSON', async () => {
    const answer = await login(good)
    expect(lineOf(answer)).toMatchObject({ outcome: 'done', target: 1 })
    expect(lineOf(answer)).not.toHaveProperty('reason')
    const headers = { 'content-type': 'application/json' }
    const broken = await call('POST', '/api/auth/login', '{', { token: null, headers })
    expect(lineOf(broken)).toMatchObject({ outcome: 'noJson' })
    expect(lineOf(broken)).not.toHaveProperty('reason')
  })
})

it.each([
  ['a deep list of lists', '['.repeat(30_000) + ']'.repeat(30_000)],
  ['true', 'true'],
])('the audit line of a matrix has no target if its idPerfil is %s', async (_, idPerfil) => {
  const headers = { 'content-type': 'application/json' }
  const path = '/api/permisos/guardar-matriz'
  const answer = await call('POST', path, `{"idPerfil":${idPerfil}}`, { headers })
  expect(answer).toMatchObject({ status: 400, body: { message: 'ID de perfil requerido' } })
  expect(lineOf(answer)).toMatchObject({ outcome: 'invalid', target: null })
})

it('the answer to a write does not contain the changes', async () => {
  const idPerfil = await addPerfil()
  const { id: idModulo } = await addModulo()
  const matriz = { idPerfil, permisos: [{ idModulo, bitEditar: true }] }
  const { answer } = await write('POST', 'permisos/guardar-matriz', matriz)
  expect(answer.body).toEqual({ success: true, message: 'Matriz actualizada correctamente' })
  const deleted = await write('DELETE', `perfil/${idPerfil}`)
  expect(deleted.answer.body).toEqual({ success: true, message: 'Eliminado correctamente' })
  const renamed = await write('PUT', `modulo/${idModulo}`, { strNombreModulo: 'OTRO' })
  expect(renamed.answer.body).toEqual({
    success: true,
    data: { id: idModulo, strNombreModulo: 'OTRO' },
  })
})

it('control characters of names in the changes are escaped', async () => {
  const strNombreModulo = 'A\u001b[2J\u009b\u202e'
  const { data } = await write('POST', 'modulo', { strNombreModulo })
  const idPerfil = await addPerfil()
  await write('POST', 'permisos', { idPerfil, idModulo: data.id, bitEditar: true })
  expect(readLog()).toContain('"granted":{"A\\u001b[2J%C2%9B%E2%80%AE":["bitEditar"]}')
  expect(readLog().replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u)
})

it('the line of a write whose answer cannot be serialized has the target and the changes', async () => {
  const broken = await testApp()
  const perfil = await broken.call('POST', '/api/perfil', { strNombrePerfil: 'Antes' })
  const { id } = perfil.body.data
  await broken.sql.unsafe(`
    create or replace function perfil_data(p_perfil perfil) returns jsonb language sql immutable
    as $$ select jsonb_build_object('id', p_perfil.id, 'strNombrePerfil', p_perfil."strNombrePerfil") $$
  `)
  expect(await broken.call('POST', '/api/perfil', { strNombrePerfil: 'Ahora' })).toMatchObject({
    status: 500,
  })
  const lines = broken
    .readLog()
    .trim()
    .split('\n')
    .map((text): Line => JSON.parse(text))
  expect(lines.findLast(({ msg }) => msg === 'audit')).toMatchObject({
    outcome: 'unexpected',
    target: id + 1,
    changes: { strNombrePerfil: [null, 'Ahora'] },
  })
})

it('LOG_LEVEL=audit logs the audit lines but not the request lines', async () => {
  const quiet = await testApp({ LOG_LEVEL: 'audit' })
  await quiet.call('POST', '/api/modulo', { strNombreModulo: 'VENTAS' })
  await quiet.call('GET', '/api/perfil')
  const lines = quiet
    .readLog()
    .trim()
    .split('\n')
    .map((text): Line => JSON.parse(text))
  // testApp sets up an administrator, who logs in.
  expect(lines.map(({ msg, route }) => [msg, route])).toEqual([
    ['administrator profile created from ADMIN_*', undefined],
    ['administrator set up from ADMIN_*, as none was active', undefined],
    ['audit', '/api/auth/login'],
    ['audit', '/api/modulo'],
  ])
})
