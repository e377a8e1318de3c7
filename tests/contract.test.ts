import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import postgres from 'postgres'
import { beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { ADMIN, API_HEADERS, cloneDatabase, JWT_SECRET, PNG, testApp } from './app.js'

type Json = Record<string, unknown>

interface Reply {
  status: number
  body: unknown
}

/** What differs from the endpoint's good request: its path and query, keys of its body, or both. */
type Change = string | Json | [string, Json]

interface Endpoint {
  /** The body of the good request. */
  body?: Json
  /** The body of its answer, which has status 200. */
  answer: Json
  /** Requests that have the same answer. */
  same?: Change[]
  /** Requests that have another answer, and change nothing. */
  cases: [Change, Reply][]
  /** The answer to any failure of the database. */
  unexpected: Reply
  /** Whether a user without any permission may call it. */
  open?: true
}

const ok = (body: Json): Reply => ({ status: 200, body: { success: true, ...body } })
const fails = (status: number, message: unknown): Reply => ({
  status,
  body: { statusCode: status, message },
})
const refuses = (message: unknown, status = 200): Reply => ({
  status,
  body: { success: false, message },
})
/** A 400 whose message names the field, in words that are nowhere fixed. */
const names = (field: string) => fails(400, expect.stringMatching(`^El campo ${field} .+`))
const required = (field: string) => fails(400, `El campo ${field} es obligatorio`)
const notBoolean = (field: string) => fails(400, `El campo ${field} debe ser booleano`)
const tooLongText = (field: string) => `El campo ${field} no puede superar los 255 caracteres`
const tooLong = (field: string) => fails(400, tooLongText(field))
const internal = fails(500, 'Error interno del servidor')

/** One reply for each of several requests. */
const each = (changes: Change[], reply: Reply) =>
  changes.map((change): [Change, Reply] => [change, reply])
/** The same for the values of one field. */
const eachValue = (field: string, values: unknown[], reply: Reply) =>
  each(
    values.map((value) => ({ [field]: value })),
    reply,
  )

const LONG = 'ñ'.repeat(256)
const NUL = 'con \0 nulo'
const SPANISH = expect.stringMatching(/^(El|La|No|Recurso|Tipo|Cuerpo|Contenido) .+/)
const HASH = expect.stringMatching(/^\$2[aby]\$10\$[./\w]{53}$/)
const NOT_NUMBERS = [null, true, false, [], [2], {}, 'dos', 1.5, '1.5', 0, '0', '']
const UNKNOWN_IDS = [999, -1, 2 ** 31, '99999999999999999999', 1e300]
const BAD_PATH_IDS = ['0', '00', 'uno', '1.5', 'NaN', 'null', 'true', '%20', '1%00', '']
const UNKNOWN_PATH_IDS = ['999', '-1', '2147483648', '99999999999999999999']
const under = (path: string, ids: string[]) => ids.map((id) => path + id)

const badPages = (path: string) =>
  each(
    under(`${path}?page=`, ['0', '-1', '1.5', 'dos', '%20', '1%00']),
    fails(400, 'El campo page debe ser un entero mayor o igual a 1'),
  )

const flags = (...granted: string[]) =>
  Object.fromEntries(
    ['bitAgregar', 'bitEditar', 'bitConsulta', 'bitEliminar', 'bitDetalle'].map((flag) => [
      flag,
      granted.includes(flag),
    ]),
  )
const BAD_FLAGS = ['true', 'false', 'x', 1, -1, [], {}]
const FALSE_FLAGS = { bitEditar: null, bitConsulta: 0, bitEliminar: '', bitDetalle: false }

// What every test starts from.
const PERMISOS = [
  { id: 1, idPerfil: 2, idModulo: 5, ...flags('bitAgregar', 'bitConsulta') },
  { id: 2, idPerfil: 2, idModulo: 6, ...flags('bitDetalle') },
  { id: 3, idPerfil: 3, idModulo: 5, ...flags() },
]
const ANA = {
  id: 2,
  strNombreUsuario: 'ana',
  idPerfil: 2,
  strCorreo: 'ana@ejemplo.com',
  strNumeroCelular: '555 0101',
  idEstadoUsuario: true,
  imagenUrl: 'https://imagenes.ejemplo.com/ana.png',
}
const ROOT = {
  id: 1,
  strNombreUsuario: ADMIN.strNombreUsuario,
  idPerfil: 1,
  strCorreo: ADMIN.strCorreo,
  strNumeroCelular: null,
  idEstadoUsuario: true,
  imagenUrl: null,
}
const EVA = {
  id: 3,
  strNombreUsuario: 'eva',
  idPerfil: 2,
  strCorreo: 'eva@ejemplo.com',
  strNumeroCelular: null,
  idEstadoUsuario: false,
  imagenUrl: null,
}
const PERFILES = [
  { id: 1, strNombrePerfil: 'ADMINISTRADOR', bitAdministrador: true },
  { id: 2, strNombrePerfil: 'Ventas 10%', bitAdministrador: false },
  { id: 3, strNombrePerfil: 'Área_Ñ \\ 2', bitAdministrador: false },
]
const MODULOS = ['USUARIO', 'PERFIL', 'MODULO', 'PERMISOS', 'CAJA_10%', 'ALMACÉN \\ Ñ'].map(
  (strNombreModulo, index) => ({ id: index + 1, strNombreModulo }),
)

const joined = (permiso: (typeof PERMISOS)[number]) => ({
  ...permiso,
  nombrePerfil: PERFILES[permiso.idPerfil - 1]?.strNombrePerfil,
  nombreModulo: MODULOS[permiso.idModulo - 1]?.strNombreModulo,
})
const perfiles = (...ids: number[]) => ({
  data: ids.map((id) => PERFILES[id - 1]),
  totalPages: Math.ceil(ids.length / 5),
})
const modulos = (...ids: number[]) => ({
  data: ids.map((id) => MODULOS[id - 1]),
  totalPages: Math.ceil(ids.length / 5),
})

const MALFORMED = fails(400, SPANISH)
const UNSUPPORTED = fails(415, SPANISH)
const NOT_FOUND = fails(404, SPANISH)
const TOO_LARGE = fails(413, SPANISH)
const NO_CAPTCHA = fails(400, 'Fallo en la validación del captcha.')
const NO_USER = fails(401, 'El usuario no existe o su estado es the service.')
const NO_CREDENTIALS = fails(400, 'Usuario y contraseña son obligatorios')
const NO_IDS = fails(400, 'Perfil y Módulo son obligatorios')
const UNKNOWN_REFERENCE = fails(400, 'El perfil o el módulo no existe')
const BAD_PERMISO_ID = fails(400, 'ID de permiso inválido')
const BAD_PERFIL_ID = fails(400, 'ID de perfil inválido')
const BAD_MATRIX_ID = fails(400, 'ID de perfil requerido')
const MATRIX_FAILED = fails(500, 'Error al guardar en base de datos')
const NO_PERFIL_NAME = fails(400, 'El nombre es obligatorio')
const NO_MODULO_NAME = refuses('El nombre del módulo es obligatorio.')
const BAD_MODULO_ID = refuses('ID de módulo inválido.')
const MODULO_NOT_CREATED = refuses('No se pudo crear el módulo en la base de datos.')
const MODULO_NOT_UPDATED = refuses('No se pudo actualizar el módulo.')
const BAD_USUARIO_ID = fails(400, 'ID de usuario inválido')
const BAD_EMAIL = fails(400, 'El campo strCorreo debe ser un correo electrónico')
const BAD_IMAGE = fails(400, 'El campo imagenBase64 debe empezar por data:image')
const LONG_PASSWORD = fails(400, 'La contraseña no puede superar los 72 bytes')
const USUARIO_NOT_UPDATED = fails(
  500,
  'Error al actualizar: la imagen es demasiado grande o el servidor tardó demasiado.',
)

const badMatrixEntries = each(
  [null, 5, 'x', [], {}, ...NOT_NUMBERS.map((idModulo) => ({ idModulo }))].map((entry) => ({
    permisos: [{ idModulo: 1 }, entry],
  })),
  fails(400, expect.stringMatching(/^El campo (permisos|idModulo) .+/)),
)

/** What the two user endpoints have in common. */
const usuarioCases: [Change, Reply][] = [
  ...['strNombreUsuario', 'idPerfil', 'strCorreo'].map((field): [Change, Reply] => [
    { [field]: undefined },
    required(field),
  ]),
  ...eachValue('strNombreUsuario', [null, '', true, [], {}, NUL], names('strNombreUsuario')),
  ...eachValue('strCorreo', [null, true, [], {}, `${NUL}@ejemplo.com`], names('strCorreo')),
  ...eachValue('strNumeroCelular', [true, [], {}, NUL], names('strNumeroCelular')),
  ...eachValue('idPerfil', NOT_NUMBERS, names('idPerfil')),
  ...eachValue('idEstadoUsuario', [1, 0, 'true', '', []], notBoolean('idEstadoUsuario')),
  ...eachValue('strPwd', [true, [], {}, NUL], names('strPwd')),
  ...eachValue('strPwd', ['x'.repeat(73), 'ñ'.repeat(37)], LONG_PASSWORD),
  [{ strNombreUsuario: LONG }, tooLong('strNombreUsuario')],
  [{ strNumeroCelular: LONG }, tooLong('strNumeroCelular')],
  [{ strCorreo: `${LONG}@ejemplo.com` }, tooLong('strCorreo')],
  ...eachValue(
    'strCorreo',
    ['ana', 'ana@', '@ejemplo.com', 'a na@ejemplo.com', 'ana@ejemplo.com,eva@ejemplo.com'],
    BAD_EMAIL,
  ),
  ...eachValue(
    'imagenBase64',
    ['/etc/hostname', 'https://ejemplo.com/a.png', 'data:text/plain;base64,QQ==', ` ${PNG}`, 'x'],
    BAD_IMAGE,
  ),
  ...eachValue(
    'imagenBase64',
    ['data:image', 'data:image/png,raw', 'data:image/../../etc/hostname', true, 5, [], {}],
    names('imagenBase64'),
  ),
  ...eachValue('idPerfil', UNKNOWN_IDS, fails(500, 'El perfil indicado no existe')),
  ...eachValue(
    'strCorreo',
    [EVA.strCorreo, 'EVA@Ejemplo.com'],
    fails(500, 'El correo electrónico ya está registrado'),
  ),
  ...eachValue(
    'strNombreUsuario',
    ['eva', 'EVA'],
    fails(500, 'El nombre de usuario ya está registrado'),
  ),
  [{ strPwd: 'x'.repeat(73), strCorreo: EVA.strCorreo }, LONG_PASSWORD],
]
const CONTRACT: Record<string, Endpoint> = {
  'POST /api/auth/login': {
    body: { strNombreUsuario: 'ana', strPwd: ADMIN.strPwd, captchaToken: 'humano' },
    answer: {
      success: true,
      token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      user: {
        id: 2,
        nombre: 'ana',
        idPerfil: 2,
        correo: ANA.strCorreo,
        celular: ANA.strNumeroCelular,
        imagenUrl: ANA.imagenUrl,
      },
    },
    same: [{ sobra: 1 }, { captchaToken: 'x'.repeat(8192) }],
    cases: [
      ...eachValue('captchaToken', [undefined, null, '', 5, true, [], {}, 'rechazar'], NO_CAPTCHA),
      [{ captchaToken: 'rechazar', strNombreUsuario: 'nadie', strPwd: undefined }, NO_CAPTCHA],
      ...eachValue('strNombreUsuario', [undefined, null, ''], NO_CREDENTIALS),
      ...eachValue('strPwd', [undefined, null, ''], NO_CREDENTIALS),
      ...eachValue('strNombreUsuario', ['nadie', 'eva', 'ANA', ' ana', NUL, LONG], NO_USER),
      ...eachValue(
        'strPwd',
        ['otra clave', 'x'.repeat(73), NUL, LONG],
        fails(401, 'Usuario o contraseña incorrectos.'),
      ),
    ],
    unexpected: internal,
  },

  'GET /api/permisos': {
    answer: { success: true, data: PERMISOS.map(joined), totalPages: 1 },
    same: ['/api/permisos?page=', '/api/permisos?page=1', '/api/permisos?sobra=1'],
    cases: [
      ...badPages('/api/permisos'),
      ...each(
        ['/api/permisos?page=2', '/api/permisos?page=99999999999999999999'],
        ok({ data: [], totalPages: 1 }),
      ),
    ],
    unexpected: fails(500, 'Error al consultar permisos'),
  },

  'POST /api/permisos': {
    body: { idPerfil: 3, idModulo: 6, bitAgregar: true },
    answer: { success: true, data: { id: 4, idPerfil: 3, idModulo: 6, ...flags('bitAgregar') } },
    same: [{ idPerfil: '3', idModulo: '6' }, FALSE_FLAGS, { id: 99, sobra: 1, nombrePerfil: 'x' }],
    cases: [
      [{ idPerfil: undefined }, NO_IDS],
      [{ idModulo: undefined }, NO_IDS],
      [{ idPerfil: undefined, bitAgregar: 'x' }, NO_IDS],
      ...eachValue(
        'idPerfil',
        NOT_NUMBERS,
        fails(400, expect.stringMatching(/^(El campo idPerfil .+|Perfil y Módulo son obligator)/)),
      ),
      ...eachValue(
        'idModulo',
        NOT_NUMBERS,
        fails(400, expect.stringMatching(/^(El campo idModulo .+|Perfil y Módulo son obligator)/)),
      ),
      ...eachValue('bitAgregar', BAD_FLAGS, notBoolean('bitAgregar')),
      [{ bitDetalle: 'x' }, notBoolean('bitDetalle')],
      ...eachValue('idPerfil', UNKNOWN_IDS, UNKNOWN_REFERENCE),
      ...eachValue('idModulo', UNKNOWN_IDS, UNKNOWN_REFERENCE),
      [{ idModulo: 5 }, fails(409, 'El perfil ya tiene permisos sobre ese módulo')],
    ],
    unexpected: internal,
  },

  'PUT /api/permisos/1': {
    body: { idPerfil: 3, idModulo: 6, bitAgregar: true },
    answer: { success: true, data: { id: 1, idPerfil: 3, idModulo: 6, ...flags('bitAgregar') } },
    same: [{ idPerfil: '3', idModulo: '6' }, FALSE_FLAGS, { id: 99, sobra: 1 }],
    cases: [
      ...each(under('/api/permisos/', BAD_PATH_IDS), BAD_PERMISO_ID),
      [['/api/permisos/0', { idPerfil: undefined }], BAD_PERMISO_ID],
      [{ idPerfil: undefined }, NO_IDS],
      [{ idModulo: undefined }, NO_IDS],
      [['/api/permisos/999', { idModulo: undefined }], NO_IDS],
      ...eachValue(
        'idPerfil',
        NOT_NUMBERS,
        fails(400, expect.stringMatching(/^(El campo idPerfil .+|Perfil y Módulo son obligator)/)),
      ),
      ...eachValue('bitAgregar', BAD_FLAGS, notBoolean('bitAgregar')),
      ...each(under('/api/permisos/', UNKNOWN_PATH_IDS), fails(404, 'Permiso no encontrado')),
      ...eachValue('idPerfil', UNKNOWN_IDS, UNKNOWN_REFERENCE),
      ...eachValue('idModulo', UNKNOWN_IDS, UNKNOWN_REFERENCE),
      [{ idPerfil: 2, idModulo: 6 }, fails(409, 'El perfil ya tiene permisos sobre ese módulo')],
    ],
    unexpected: internal,
  },

  'DELETE /api/permisos/1': {
    answer: { success: true, message: 'Eliminado correctamente' },
    cases: [
      ...each(under('/api/permisos/', BAD_PATH_IDS), BAD_PERMISO_ID),
      ...each(
        under('/api/permisos/', UNKNOWN_PATH_IDS),
        ok({ message: 'Eliminado correctamente' }),
      ),
    ],
    unexpected: internal,
  },

  'GET /api/permisos/mis-permisos/2': {
    answer: {
      success: true,
      permisos: {
        'CAJA_10%': { nombreModulo: 'CAJA_10%', ...flags('bitAgregar', 'bitConsulta') },
        'ALMACÉN \\ Ñ': { nombreModulo: 'ALMACÉN \\ Ñ', ...flags('bitDetalle') },
      },
    },
    cases: [
      ...each(under('/api/permisos/mis-permisos/', BAD_PATH_IDS), BAD_PERFIL_ID),
      ...each(under('/api/permisos/mis-permisos/', UNKNOWN_PATH_IDS), ok({ permisos: {} })),
      ['/api/permisos/mis-permisos/1', ok({ permisos: {} })],
    ],
    unexpected: fails(500, 'Error al cargar los permisos del usuario'),
    open: true,
  },

  'GET /api/permisos/por-perfil/2': {
    answer: { success: true, data: PERMISOS.slice(0, 2) },
    cases: [
      ...each(under('/api/permisos/por-perfil/', BAD_PATH_IDS), BAD_PERFIL_ID),
      ...each(under('/api/permisos/por-perfil/', UNKNOWN_PATH_IDS), ok({ data: [] })),
      ['/api/permisos/por-perfil/1', ok({ data: [] })],
    ],
    unexpected: fails(500, 'Error al cargar permisos'),
  },

  'POST /api/permisos/guardar-matriz': {
    body: { idPerfil: 2, permisos: [{ idModulo: 1, bitAgregar: true }] },
    answer: { success: true, message: 'Matriz actualizada correctamente' },
    same: [
      { idPerfil: '2', sobra: 1 },
      { permisos: [{ idModulo: '1', sobra: 1, ...FALSE_FLAGS }] },
      { permisos: undefined },
      { permisos: null },
      { permisos: [] },
      { idPerfil: 999, permisos: [] },
      { idPerfil: 1e300, permisos: undefined },
    ],
    cases: [
      ...eachValue('idPerfil', [undefined, ...NOT_NUMBERS], BAD_MATRIX_ID),
      [{ idPerfil: 0, permisos: 'x' }, BAD_MATRIX_ID],
      ...eachValue('permisos', ['x', 5, true, {}], names('permisos')),
      ...badMatrixEntries,
      ...each(
        BAD_FLAGS.map((bitAgregar) => ({
          permisos: [{ idModulo: 1 }, { idModulo: 2, bitAgregar }],
        })),
        notBoolean('bitAgregar'),
      ),
      ...each(
        UNKNOWN_IDS.map((idModulo) => ({ permisos: [{ idModulo: 1 }, { idModulo }] })),
        MATRIX_FAILED,
      ),
      ...eachValue('idPerfil', UNKNOWN_IDS, MATRIX_FAILED),
      [{ permisos: [{ idModulo: 1 }, { idModulo: 2 }, { idModulo: '1' }] }, MATRIX_FAILED],
    ],
    unexpected: MATRIX_FAILED,
  },

  'GET /api/perfil': {
    answer: { success: true, ...perfiles(3, 2, 1) },
    same: ['/api/perfil?page=&search=&isAdmin=', '/api/perfil?page=1&sobra=1'],
    cases: [
      ...badPages('/api/perfil'),
      ...each(
        under('/api/perfil?isAdmin=', ['TRUE', '1', 'x', '%20', 'true%00']),
        names('isAdmin'),
      ),
      ['/api/perfil?page=2', ok({ data: [], totalPages: 1 })],
      ['/api/perfil?page=99999999999999999999', ok({ data: [], totalPages: 1 })],
      ['/api/perfil?isAdmin=true', ok(perfiles(1))],
      ['/api/perfil?isAdmin=false', ok(perfiles(3, 2))],
      ['/api/perfil?isAdmin=false&search=ventas', ok(perfiles(2))],
      ['/api/perfil?isAdmin=true&search=ventas', ok(perfiles())],
      ...each(
        under('/api/perfil?search=', [
          '%C3%A1rea',
          '%C3%81REA',
          '%C3%B1',
          '_',
          '%5C',
          '%20%5C%202',
        ]),
        ok(perfiles(3)),
      ),
      ...each(under('/api/perfil?search=', ['%25', '0%25', 'VENTAS', 's%201']), ok(perfiles(2))),
      ...each(
        under('/api/perfil?search=', ['nada', 'V%25s', '__', '%5C%25', '%27%20or%201%3D1', LONG]),
        ok(perfiles()),
      ),
    ],
    unexpected: refuses('Ocurrió un error al consultar los perfiles.', 500),
  },

  'GET /api/perfil/list': {
    answer: {
      success: true,
      data: PERFILES.map(({ id, strNombrePerfil }) => ({ id, strNombrePerfil })),
    },
    same: ['/api/perfil/list?page=0&search=x'],
    cases: [],
    unexpected: fails(500, 'Error al cargar lista de perfiles'),
    open: true,
  },

  'PUT /api/perfil/2': {
    body: { strNombrePerfil: ' Compras ', bitAdministrador: false },
    answer: {
      success: true,
      data: { id: 2, strNombrePerfil: ' Compras ', bitAdministrador: false },
    },
    same: [{ id: 99, sobra: 1 }],
    cases: [
      ...each(under('/api/perfil/', BAD_PATH_IDS), BAD_PERFIL_ID),
      [['/api/perfil/0', { strNombrePerfil: undefined }], BAD_PERFIL_ID],
      ...eachValue('strNombrePerfil', [undefined, null, '', '  ', '\t\n\u00a0'], NO_PERFIL_NAME),
      [{ strNombrePerfil: undefined, bitAdministrador: undefined }, NO_PERFIL_NAME],
      [['/api/perfil/999', { strNombrePerfil: '' }], NO_PERFIL_NAME],
      ...eachValue('strNombrePerfil', [true, [], {}, NUL], names('strNombrePerfil')),
      [{ strNombrePerfil: LONG }, tooLong('strNombrePerfil')],
      [{ bitAdministrador: undefined }, required('bitAdministrador')],
      ...eachValue('bitAdministrador', [0, 1, 'true', '', []], notBoolean('bitAdministrador')),
      [{ bitAdministrador: null }, names('bitAdministrador')],
      ...each(under('/api/perfil/', UNKNOWN_PATH_IDS), fails(404, 'Perfil no encontrado')),
    ],
    unexpected: fails(500, 'Ocurrió un error interno al actualizar el perfil'),
  },

  'GET /api/modulo': {
    answer: { success: true, ...modulos(6, 5, 4, 3, 2, 1), data: MODULOS.slice(1).reverse() },
    same: ['/api/modulo?page=&search=', '/api/modulo?page=1&sobra=1'],
    cases: [
      ...badPages('/api/modulo'),
      ['/api/modulo?page=2', ok({ data: MODULOS.slice(0, 1), totalPages: 2 })],
      ['/api/modulo?page=3', ok({ data: [], totalPages: 2 })],
      ['/api/modulo?page=99999999999999999999', ok({ data: [], totalPages: 2 })],
      ...each(
        under('/api/modulo?search=', ['almac%C3%A9n', '%C3%89N', '%C3%B1', '%5C', '%20%5C%20']),
        ok(modulos(6)),
      ),
      ...each(under('/api/modulo?search=', ['%25', '_', 'caja', 'a_1']), ok(modulos(5))),
      ...each(
        under('/api/modulo?search=', ['nada', 'c%25a', '____', '%5C_', '%27%20or%201%3D1', LONG]),
        ok(modulos()),
      ),
    ],
    unexpected: refuses('Ocurrió un error al consultar los módulos.', 500),
  },

  'GET /api/modulo/list': {
    answer: { success: true, data: MODULOS },
    same: ['/api/modulo/list?page=0&search=x'],
    cases: [],
    unexpected: fails(500, 'Error al cargar módulos'),
    open: true,
  },

  'POST /api/modulo': {
    body: { strNombreModulo: ' módulo ñandú ' },
    answer: { success: true, data: { id: 7, strNombreModulo: ' MÓDULO ÑANDÚ ' } },
    same: [{ id: 99, sobra: 1 }],
    cases: [
      ...eachValue(
        'strNombreModulo',
        [undefined, null, '', '  ', '\t\n\u00a0', 0, false, NUL],
        NO_MODULO_NAME,
      ),
      ...eachValue('strNombreModulo', [true, [], {}], names('strNombreModulo')),
      [{ strNombreModulo: LONG }, refuses(tooLongText('strNombreModulo'))],
      ...eachValue('strNombreModulo', ['USUARIO', 'almacén \\ ñ'], MODULO_NOT_CREATED),
    ],
    unexpected: MODULO_NOT_CREATED,
  },

  'PUT /api/modulo/5': {
    body: { strNombreModulo: 'razón social' },
    answer: { success: true, data: { id: 5, strNombreModulo: 'RAZÓN SOCIAL' } },
    same: [{ id: 99, sobra: 1 }],
    cases: [
      ...each(under('/api/modulo/', BAD_PATH_IDS), BAD_MODULO_ID),
      [['/api/modulo/0', { strNombreModulo: undefined }], BAD_MODULO_ID],
      ...eachValue(
        'strNombreModulo',
        [undefined, null, '', '  ', '\t\n\u00a0', 0, false, NUL],
        NO_MODULO_NAME,
      ),
      [['/api/modulo/999', { strNombreModulo: '' }], NO_MODULO_NAME],
      ...eachValue('strNombreModulo', [true, [], {}], names('strNombreModulo')),
      [{ strNombreModulo: LONG }, refuses(tooLongText('strNombreModulo'))],
      [{ strNombreModulo: 'almacén \\ ñ' }, MODULO_NOT_UPDATED],
      ...each(under('/api/modulo/', UNKNOWN_PATH_IDS), ok({})),
      [['/api/modulo/999', { strNombreModulo: 'USUARIO' }], ok({})],
    ],
    unexpected: MODULO_NOT_UPDATED,
  },

  'POST /api/usuario': {
    body: {
      strNombreUsuario: 'Iván',
      idPerfil: 2,
      strPwd: 'otra clave',
      strCorreo: 'ivan@ejemplo.com',
    },
    answer: {
      success: true,
      data: {
        id: 4,
        strNombreUsuario: 'Iván',
        idPerfil: 2,
        strPwd: HASH,
        strCorreo: 'ivan@ejemplo.com',
        strNumeroCelular: null,
        idEstadoUsuario: true,
        imagenUrl: null,
      },
    },
    same: [
      { idPerfil: '2' },
      { strNumeroCelular: null, idEstadoUsuario: null, imagenBase64: null },
      { imagenBase64: '' },
      { id: 99, sobra: 1, imagenUrl: 'https://ejemplo.com/a.png' },
      { strPwd: 'ñ'.repeat(36) },
    ],
    cases: [
      ...usuarioCases,
      [{ strPwd: undefined }, required('strPwd')],
      ...eachValue('strPwd', [null, ''], names('strPwd')),
    ],
    unexpected: internal,
  },

  'PUT /api/usuario/2': {
    body: {
      strNombreUsuario: 'Ana',
      idPerfil: 3,
      strCorreo: 'ANA@ejemplo.com',
      idEstadoUsuario: false,
    },
    answer: {
      success: true,
      data: {
        ...ANA,
        strNombreUsuario: 'Ana',
        idPerfil: 3,
        strPwd: HASH,
        strCorreo: 'ANA@ejemplo.com',
        strNumeroCelular: null,
        idEstadoUsuario: false,
      },
    },
    same: [
      { idPerfil: '3' },
      { strNumeroCelular: null, strPwd: null, imagenBase64: null },
      { strPwd: '', imagenBase64: '' },
      { id: 99, sobra: 1, imagenUrl: 'https://ejemplo.com/a.png' },
      { strPwd: 'x'.repeat(72) },
    ],
    cases: [
      ...each(under('/api/usuario/', BAD_PATH_IDS), BAD_USUARIO_ID),
      [['/api/usuario/0', { idPerfil: undefined }], BAD_USUARIO_ID],
      ...usuarioCases,
      [{ idEstadoUsuario: undefined }, required('idEstadoUsuario')],
      [{ idEstadoUsuario: null }, names('idEstadoUsuario')],
      [['/api/usuario/999', { strCorreo: 'ana' }], BAD_EMAIL],
      ...each(under('/api/usuario/', UNKNOWN_PATH_IDS), ok({})),
      [['/api/usuario/999', { strCorreo: EVA.strCorreo, idPerfil: 999 }], ok({})],
    ],
    unexpected: USUARIO_NOT_UPDATED,
  },
}

const ENDPOINTS = Object.keys(CONTRACT)
const GUARDED = ENDPOINTS.filter((endpoint) => endpoint !== 'POST /api/auth/login')
const WITH_BODY = ENDPOINTS.filter((endpoint) => CONTRACT[endpoint]?.body)

const service = await testApp({ BODY_LIMIT_MIB: '1' })
const { sql } = service.app
const [{ strPwd }] = await sql<[{ strPwd: string }]>`select "strPwd" from usuario`

beforeEach(async () => {
  const rows = (records: { id: number }[]) =>
    sql(records.map(({ id: _, ...row }) => row as Record<string, string>))
  await sql`truncate perfil, modulo, permisos_perfil, usuario restart identity`
  await sql`insert into perfil ${rows(PERFILES)}`
  await sql`insert into modulo ${rows(MODULOS)}`
  await sql`insert into permisos_perfil ${rows(PERMISOS)}`
  await sql`insert into usuario ${rows([ROOT, ANA, EVA].map((user) => ({ ...user, strPwd })))}`
})

const stored = () =>
  Promise.all([
    sql`select * from perfil order by id`,
    sql`select * from modulo order by id`,
    sql`select * from permisos_perfil order by id`,
    sql`select * from usuario order by id`,
  ])

interface Options {
  token?: string | null
  headers?: Record<string, string>
  through?: Pick<typeof service, 'call'>
}

/** Sends an endpoint's good request, changed. */
async function send(
  endpoint: string,
  change: Change = {},
  { through = service, ...options }: Options = {},
): Promise<Reply> {
  const [method, good] = endpoint.split(' ') as ['GET', string]
  const [path, changes] =
    typeof change === 'string' ? [change, {}] : Array.isArray(change) ? change : [good, change]
  const { body } = CONTRACT[endpoint] as Endpoint
  const answer = await through.call(method, path, body && { ...body, ...changes }, options)
  return { status: answer.status, body: answer.body }
}

/** The same with a body that is text. */
async function sendText(endpoint: string, payload: string, headers: object, token?: null | string) {
  const [method, path] = endpoint.split(' ') as ['POST', string]
  const options = { headers, ...(token !== undefined && { token }) }
  const { status, body } = await service.call(method, path, payload, options)
  return { status, body }
}

const short = (value: unknown) => {
  const text = JSON.stringify(value, (_, item) => (item === undefined ? 'omitted' : item))
  return text.length > 90 ? `${text.slice(0, 90)}…` : text
}

describe.each(ENDPOINTS)('%s', (endpoint) => {
  const { answer, same = [], cases } = CONTRACT[endpoint] as Endpoint

  it('succeeds', async () => {
    expect(await send(endpoint)).toStrictEqual({ status: 200, body: answer })
  })

  it.each(same.map((change) => [short(change), change] as const))('%s: same', async (_, change) => {
    expect(await send(endpoint, change)).toStrictEqual({ status: 200, body: answer })
  })

  it.each(cases.map(([change, reply]) => [short(change), reply.status, change, reply] as const))(
    '%s: %i',
    async (_, __, change, reply) => {
      const before = await stored()
      expect(await send(endpoint, change)).toStrictEqual(reply)
      expect(await stored()).toEqual(before)
    },
  )
})

describe('a body that cannot be read', () => {
  const json = { 'content-type': 'application/json' }
  const body = (endpoint: string) => CONTRACT[endpoint]?.body

  it.each(WITH_BODY)('%s', async (endpoint) => {
    const before = await stored()
    for (const malformed of ['{', '{"a":}', 'x', "{'a':1}"])
      expect(await sendText(endpoint, malformed, json)).toStrictEqual(MALFORMED)
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])
      expect(
        await sendText(endpoint, JSON.stringify(body(endpoint)), { 'content-type': type }),
      ).toStrictEqual(UNSUPPORTED)
    const huge = JSON.stringify({ ...body(endpoint), sobra: 'x'.repeat(2 ** 20) })
    expect(await sendText(endpoint, huge, json)).toStrictEqual(
      {
        'POST /api/usuario': fails(500, 'La imagen es demasiado grande'),
        'PUT /api/usuario/2': USUARIO_NOT_UPDATED,
      }[endpoint] ?? TOO_LARGE,
    )
    expect(await stored()).toEqual(before)
  })

  it.each([
    ['POST /api/auth/login', NO_CAPTCHA],
    ['POST /api/permisos', NO_IDS],
    ['PUT /api/permisos/1', NO_IDS],
    ['POST /api/permisos/guardar-matriz', BAD_MATRIX_ID],
    ['PUT /api/perfil/2', NO_PERFIL_NAME],
    ['POST /api/modulo', NO_MODULO_NAME],
    ['PUT /api/modulo/5', NO_MODULO_NAME],
    ['POST /api/usuario', required('strNombreUsuario')],
    ['PUT /api/usuario/2', required('strNombreUsuario')],
  ])('%s: none at all is as one without keys', async (endpoint, reply) => {
    const [method, path] = endpoint.split(' ') as ['POST', string]
    for (const none of [undefined, {}]) {
      const { status, body } = await service.call(method, path, none)
      expect({ status, body }).toStrictEqual(reply)
    }
  })

  it('is read to its end, so that the client sees the answer', async () => {
    const address = await service.app.listen({ port: 0, host: '127.0.0.1' })
    const huge = new Uint8Array(5 * 2 ** 20).fill(120)
    for (const body of [huge, new Blob([huge]).stream()]) {
      const response = await fetch(`${address}/api/perfil/2`, {
        method: 'PUT',
        headers: { ...json, cookie: `auth_token=${service.adminToken}` },
        body,
        ...{ duplex: 'half' },
      })
      expect({ status: response.status, body: await response.json() }).toStrictEqual(TOO_LARGE)
    }
  })

  it('DELETE with a JSON content type has none', async () => {
    expect(await send('DELETE /api/permisos/1', {}, { headers: json })).toStrictEqual(
      ok({ message: 'Eliminado correctamente' }),
    )
  })
})

it.each([
  ['GET', '/'],
  ['GET', '/nada'],
  ['GET', '/api'],
  ['GET', '/api/nada'],
  ['GET', '/api/auth/login'],
  ['GET', '/api/permisos/1'],
  ['PATCH', '/api/perfil/2'],
  ['PUT', '/api/perfil/2/nada'],
  ['POST', '/api/modulo/5'],
] as const)('%s %s: 404', async (method, path) => {
  const { status, body } = await service.call(method, path)
  expect({ status, body }).toStrictEqual(NOT_FOUND)
})

describe('a request that cannot be read', () => {
  const UNREADABLE = 'La petición no es válida'

  it.each(['%', '%ff', '%E0%A4%A'])('for its path, %s', async (id) => {
    const { headers, ...reply } = await service.call('GET', `/api/permisos/por-perfil/${id}`)
    expect(reply).toStrictEqual(fails(400, UNREADABLE))
    expect(headers).toMatchObject({
      ...API_HEADERS,
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
    })
  })

  /** All that comes back on a connection on which the server has this to do. */
  async function received(act: (socket: Socket, client: Socket) => void) {
    const address = new URL(service.app.listeningOrigin)
    const accepted = once(service.app.server, 'connection')
    const client = connect(Number(address.port), address.hostname)
    act((await accepted)[0], client)
    return text(client)
  }
  const answer = (status: string) => {
    const body = `{"statusCode":${status.slice(0, 3)},"message":"${UNREADABLE}"}`
    return (
      `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
    )
  }

  beforeAll(async () => {
    if (!service.app.server.listening) await service.app.listen({ port: 0, host: '127.0.0.1' })
  })

  it.each([
    ['hola\r\n\r\n', '400 Bad Request'],
    [`GET / HTTP/1.1\r\nx: ${'x'.repeat(17_000)}\r\n\r\n`, '431 Request Header Fields Too Large'],
  ])('as HTTP: %.20j', async (sent, status) => {
    expect(await received((_, client) => client.write(sent))).toBe(answer(status))
  })

  it.each([
    ['ERR_HTTP_REQUEST_TIMEOUT', answer('408 Request Timeout')],
    ['ERR_OTHER', answer('400 Bad Request')],
    ['ECONNRESET', ''],
  ])('to its end: %s', async (code, expected) => {
    const error = Object.assign(new Error(code), { code })
    expect(await received((socket) => service.app.server.emit('clientError', error, socket))).toBe(
      expected,
    )
  })
})

it('keeps texts of 255 characters as given, whatever their bytes', async () => {
  const text = '🗝'.repeat(255)
  const words = { strNombreUsuario: text, strNumeroCelular: text }
  expect(await send('PUT /api/perfil/2', { strNombrePerfil: text })).toStrictEqual(
    ok({ data: { id: 2, strNombrePerfil: text, bitAdministrador: false } }),
  )
  expect(await send('POST /api/modulo', { strNombreModulo: text })).toStrictEqual(
    ok({ data: { id: 7, strNombreModulo: text } }),
  )
  expect((await send('POST /api/usuario', words)).body).toMatchObject({ data: words })
})

describe('the session', () => {
  const now = Math.floor(Date.now() / 1000)
  const payload = { id: 1, idPerfil: 1, nombre: ADMIN.strNombreUsuario, iat: now, exp: now + 3600 }

  function jwt(changes: object = {}, alg = 'HS256', key = JWT_SECRET) {
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
    const text = `${encode({ alg, typ: 'JWT' })}.${encode({ ...payload, ...changes })}`
    if (alg === 'none') return `${text}.`
    return `${text}.${createHmac(alg.replace('HS', 'sha'), key).update(text).digest('base64url')}`
  }

  const INVALID: Record<string, string | null> = {
    'no token': null,
    empty: '',
    'no JWT': 'x',
    'forged payload': jwt().replace(/\..+\./, `${jwt({ id: 2 }).match(/\..+\./)}`),
    unsigned: jwt().replace(/[^.]+$/, ''),
    'alg none': jwt({}, 'none'),
    HS512: jwt({}, 'HS512'),
    'other key': jwt({}, 'HS256', 'otro secreto de pruebas de 32 caracteres'),
    expired: jwt({ exp: now - 1 }),
    'no exp': jwt({ exp: undefined }),
    'no id': jwt({ id: undefined }),
    'user inactive': jwt({ id: 3 }),
    'user gone': jwt({ id: 99 }),
  }
  const NO_SESSION = fails(401, 'Sesión no válida o expirada')
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  it.each(GUARDED)('%s: 401 before anything else', async (endpoint) => {
    const before = await stored()
    const got: Record<string, Reply> = {}
    const want: Record<string, Reply> = {}
    for (const [name, token] of Object.entries(INVALID)) {
      got[`${name} in the cookie`] = await send(endpoint, {}, { token })
      got[`${name} as Bearer`] = await send(
        endpoint,
        {},
        // Bearer decides, whatever the cookie; without a token there is nothing to decide.
        { headers: bearer(token ?? ''), token: token ? jwt() : null },
      )
      want[`${name} in the cookie`] = NO_SESSION
      want[`${name} as Bearer`] = NO_SESSION
    }
    if (CONTRACT[endpoint]?.body) {
      const json = { 'content-type': 'application/json' }
      got.malformed = await sendText(endpoint, '{', json, null)
      got.huge = await sendText(endpoint, 'x'.repeat(2 ** 21), json, null)
      got.text = await sendText(endpoint, 'x', { 'content-type': 'text/plain' }, null)
      Object.assign(want, { malformed: NO_SESSION, huge: NO_SESSION, text: NO_SESSION })
    }
    expect(got).toStrictEqual(want)
    expect(await stored()).toEqual(before)
  })

  it('takes a token of its own making, by cookie or by Bearer, and Bearer decides', async () => {
    const answer = { status: 200, body: CONTRACT['GET /api/perfil']?.answer }
    for (const options of [
      { token: jwt() },
      { token: null, headers: bearer(jwt()) },
      { token: 'x', headers: bearer(jwt()) },
    ])
      expect(await send('GET /api/perfil', {}, options)).toStrictEqual(answer)
  })

  it('is of no account at login', async () => {
    const answer = { status: 200, body: CONTRACT['POST /api/auth/login']?.answer }
    for (const token of [null, 'x', jwt({ id: 99 })])
      expect(await send('POST /api/auth/login', {}, { token })).toStrictEqual(answer)
  })

  it.each(GUARDED)('%s: 403 before 400', async (endpoint) => {
    const token = jwt({ id: 2, idPerfil: 1 })
    const before = await stored()
    const { open, answer, body } = CONTRACT[endpoint] as Endpoint
    const forbidden = fails(403, 'No tiene permiso para realizar esta acción')
    const reply = await send(endpoint, {}, { token })
    expect(reply).toStrictEqual(open ? { status: 200, body: answer } : forbidden)
    if (body) {
      const malformed = await sendText(endpoint, '{', { 'content-type': 'application/json' }, token)
      expect(malformed).toStrictEqual(forbidden)
    }
    expect(await stored()).toEqual(before)
  })
})

describe('a database that fails', () => {
  let gone: typeof service
  let crippled: typeof service

  beforeAll(async () => {
    const DATABASE_URL = await cloneDatabase()
    gone = await testApp({ DATABASE_URL })
    const server = postgres(inject('serverUrl'), { max: 1 })
    await server.unsafe(`drop database ${new URL(DATABASE_URL).pathname.slice(1)} with (force)`)
    await server.end()

    crippled = await testApp()
    await crippled.app.sql.unsafe(`
      drop table permisos_perfil cascade;
      alter table perfil drop column "strNombrePerfil";
      alter table modulo drop column "strNombreModulo" cascade;
      alter table usuario drop column "strNumeroCelular";
    `)
  })

  it.each(ENDPOINTS)('%s', async (endpoint) => {
    const { unexpected } = CONTRACT[endpoint] as Endpoint
    expect({
      'under the session': await send(endpoint, {}, { through: gone, token: gone.adminToken }),
      'under the endpoint': await send(endpoint, {}, { through: crippled }),
    }).toStrictEqual({ 'under the session': unexpected, 'under the endpoint': unexpected })
  })
})
