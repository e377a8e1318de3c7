import { createHmac } from 'node:crypto'
import postgres from 'postgres'
import { beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { ADMIN, cloneDatabase, JWT_SECRET, PNG, testApp } from './app.js'

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
const required = (field: string) => fails(400, `El campo ${field} es obligatorio`)
const notText = (field: string) => fails(400, `El campo ${field} debe ser texto`)
const notNumber = (field: string) =>
  fails(400, `El campo ${field} debe ser un número entero distinto de 0`)
const badCharacters = (field: string) =>
  fails(400, `El campo ${field} contiene caracteres no permitidos`)
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
/** Texts to search for: the longest one that may be, in one and two UTF-16 units, and longer ones. */
const LONGEST_SEARCHES = ['ñ'.repeat(255), '🗝'.repeat(255)]
const LONGER_SEARCHES = [LONG, '🗝'.repeat(256), 'x'.repeat(12_000)]
const NUL = 'con \0 nulo'
const HASH = expect.stringMatching(/^\$2[aby]\$10\$[./\w]{53}$/)
const MISSING = [undefined, null, '']
const NOT_TEXTS = [5, true, ['x'], {}]
const NOT_NUMBERS = [true, false, [], [2], {}, 'dos', 1.5, '1.5', 0, '0', '-0', ' ']
const UNKNOWN_IDS = [999, -1, 2 ** 31, '99999999999999999999', '1e400', 1e300]
const BAD_PATH_IDS = [
  '0',
  '00',
  '-0',
  'uno',
  '1.5',
  'NaN',
  'null',
  'true',
  '%20',
  '1%00',
  '1,2',
  '',
]
const UNKNOWN_PATH_IDS = ['999', '-1', '2147483648', '99999999999999999999', '1e400']
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
const LONG_PASSWORD = fails(400, 'La contraseña no puede superar los 72 bytes')
const USUARIO_NOT_UPDATED = fails(
  500,
  'Error al actualizar: la imagen es demasiado grande o el servidor tardó demasiado.',
)

/** The good matrix with one more entry. */
const withEntry = (entry: unknown) => ({ permisos: [{ idModulo: 1 }, entry] })
const withModulo = (idModulo: unknown) => withEntry({ idModulo })
const badMatrixEntries = [
  ...each(
    [null, 5, 'x', [], [1]].map(withEntry),
    fails(400, 'El campo permisos debe ser una lista de objetos'),
  ),
  ...each(MISSING.map(withModulo), required('idModulo')),
  ...each(NOT_NUMBERS.map(withModulo), notNumber('idModulo')),
  ...each(
    BAD_FLAGS.map((bitAgregar) => withEntry({ idModulo: 2, bitAgregar })),
    notBoolean('bitAgregar'),
  ),
]

/** What is no email address. */
const NO_EMAILS = [
  ...['ana', '@x.es', 'a@', 'a@x', 'a@.es', 'a@x.', 'a@-x.es', 'a@x-.es', 'a@x_y.es', 'a@@x.es'],
  ...['a b@x.es', 'a..b@x.es', '.a@x.es', 'a.@x.es', 'a@x.es.', 'a@x.es\n', ' a@x.es', 'a@x.es b'],
  ...['a"@x.es', 'a(@x.es', 'a,@x.es', 'a:@x.es', 'a;@x.es', 'a<@x.es', 'a[@x.es', 'a\\@x.es'],
  ...['a\u0007@x.es', 'ana@ejemplo.com,eva@ejemplo.com'],
]
const EMAILS = ['a@b.cc', 'ana.b+c@x-y.ejemplo.com', 'ñu@ñandú.es', "o'brien@1.es"]

/** Texts that begin as an image does and are no whole one, as the image host's SDK would take it. */
const NO_IMAGES = [
  ...['data:image', 'data:image/png', 'data:image/png,AAAA', 'data:image/;base64,AAAA'],
  ...['data:imagen/png;base64,AAAA', 'data:image/p g;base64,AAAA', 'data:image/../../etc/hostname'],
  ...['', '\nAA', 'A===', '=AAA', 'AA=A', 'AA A', 'AAA-', 'AA=\n=', 'AA=\n\n'].map(
    (base64) => `data:image/png;base64,${base64}`,
  ),
  ...['x', 'x=', 'a=b;c=d'].map((parameter) => `data:image/png;${parameter};base64,AAAA`),
  `data:image/${'a'.repeat(31)};base64,AAAA`,
  `data:image/a+${'b'.repeat(11)};base64,AAAA`,
  `data:image/a;c=${'d'.repeat(21)};base64,AAAA`,
]

/** What the two user endpoints have in common. */
const usuarioCases: [Change, Reply][] = [
  ...eachValue('strNombreUsuario', [...MISSING, ' \t'], required('strNombreUsuario')),
  ...eachValue('strNombreUsuario', NOT_TEXTS, notText('strNombreUsuario')),
  ...eachValue(
    'strNombreUsuario',
    [NUL, 'a\ud800', ' ana', 'ana\u3000', 'a\u200bna', 'a\u0007na', '\u202eana'],
    badCharacters('strNombreUsuario'),
  ),
  ...eachValue('strNombreUsuario', [LONG, 'x'.repeat(511)], tooLong('strNombreUsuario')),
  ...eachValue('idPerfil', MISSING, required('idPerfil')),
  ...eachValue('idPerfil', NOT_NUMBERS, notNumber('idPerfil')),
  ...eachValue('strCorreo', [...MISSING, ' '], required('strCorreo')),
  ...eachValue('strCorreo', NOT_TEXTS, notText('strCorreo')),
  [{ strCorreo: `${NUL}@ejemplo.com` }, badCharacters('strCorreo')],
  [{ strCorreo: `${LONG}@ejemplo.com` }, tooLong('strCorreo')],
  ...eachValue('strCorreo', NO_EMAILS, BAD_EMAIL),
  ...eachValue('strNumeroCelular', NOT_TEXTS, notText('strNumeroCelular')),
  ...eachValue('strNumeroCelular', [NUL, '\ud800'], badCharacters('strNumeroCelular')),
  [{ strNumeroCelular: LONG }, tooLong('strNumeroCelular')],
  ...eachValue('idEstadoUsuario', [1, 0, 'true', '', []], notBoolean('idEstadoUsuario')),
  ...eachValue('strPwd', NOT_TEXTS, notText('strPwd')),
  [{ strPwd: NUL }, badCharacters('strPwd')],
  ...eachValue('strPwd', ['x'.repeat(73), `${'ñ'.repeat(36)}x`], LONG_PASSWORD),
  [{ strPwd: 'x'.repeat(73), strCorreo: EVA.strCorreo }, LONG_PASSWORD],
  ...eachValue('imagenBase64', NOT_TEXTS, notText('imagenBase64')),
  ...eachValue(
    'imagenBase64',
    ['/etc/hostname', 'https://ejemplo.com/a.png', 'data:text/plain;base64,QQ==', ` ${PNG}`, 'x'],
    fails(400, 'El campo imagenBase64 debe empezar por data:image'),
  ),
  ...eachValue(
    'imagenBase64',
    NO_IMAGES,
    fails(400, 'El campo imagenBase64 debe ser una imagen completa en base64'),
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
      ...eachValue(
        'captchaToken',
        [undefined, null, '', 5, true, [], {}, 'rechazar', 'x'.repeat(8193)],
        NO_CAPTCHA,
      ),
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
      [{ idPerfil: undefined, bitAgregar: 'x' }, NO_IDS],
      ...eachValue('idPerfil', MISSING, NO_IDS),
      ...eachValue('idPerfil', NOT_NUMBERS, notNumber('idPerfil')),
      ...eachValue('idModulo', MISSING, NO_IDS),
      ...eachValue('idModulo', NOT_NUMBERS, notNumber('idModulo')),
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
      [['/api/permisos/999', { idModulo: undefined }], NO_IDS],
      ...eachValue('idPerfil', MISSING, NO_IDS),
      ...eachValue('idPerfil', NOT_NUMBERS, notNumber('idPerfil')),
      ...eachValue('idModulo', MISSING, NO_IDS),
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
      ...eachValue('idPerfil', [...MISSING, ...NOT_NUMBERS], BAD_MATRIX_ID),
      [{ idPerfil: 0, permisos: 'x' }, BAD_MATRIX_ID],
      ...eachValue(
        'permisos',
        ['x', 5, true, {}],
        fails(400, 'El campo permisos debe ser una lista'),
      ),
      ...badMatrixEntries,
      ...each(UNKNOWN_IDS.map(withModulo), MATRIX_FAILED),
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
        fails(400, 'El campo isAdmin debe ser true o false'),
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
        under('/api/perfil?search=', ['nada', 'V%25s', '__', '%5C%25', '%27%20or%201%3D1']),
        ok(perfiles()),
      ),
      ...each(under('/api/perfil?search=', LONGEST_SEARCHES), ok(perfiles())),
      ...each(under('/api/perfil?search=', LONGER_SEARCHES), tooLong('search')),
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
      ...eachValue('strNombrePerfil', NOT_TEXTS, notText('strNombrePerfil')),
      ...eachValue('strNombrePerfil', [NUL, '\udc00x'], badCharacters('strNombrePerfil')),
      [{ strNombrePerfil: LONG }, tooLong('strNombrePerfil')],
      ...eachValue('bitAdministrador', [undefined, null], required('bitAdministrador')),
      ...eachValue('bitAdministrador', [0, 1, 'true', '', []], notBoolean('bitAdministrador')),
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
        under('/api/modulo?search=', ['nada', 'c%25a', '____', '%5C_', '%27%20or%201%3D1']),
        ok(modulos()),
      ),
      ...each(under('/api/modulo?search=', LONGEST_SEARCHES), ok(modulos())),
      ...each(under('/api/modulo?search=', LONGER_SEARCHES), tooLong('search')),
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
      ...eachValue('strNombreModulo', NOT_TEXTS, notText('strNombreModulo')),
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
      ...eachValue('strNombreModulo', NOT_TEXTS, notText('strNombreModulo')),
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
    cases: [...usuarioCases, ...eachValue('strPwd', MISSING, required('strPwd'))],
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
      ...eachValue('idEstadoUsuario', [undefined, null], required('idEstadoUsuario')),
      [['/api/usuario/999', { strCorreo: 'ana' }], BAD_EMAIL],
      ...each(under('/api/usuario/', UNKNOWN_PATH_IDS), ok({})),
      [['/api/usuario/999', { strCorreo: EVA.strCorreo, idPerfil: 999 }], ok({})],
    ],
    unexpected: USUARIO_NOT_UPDATED,
  },
}

const ENDPOINTS = Object.keys(CONTRACT)
const GUARDED = ENDPOINTS.filter((endpoint) => endpoint !== 'POST /api/auth/login')

const service = await testApp()
const { sql } = service
const [{ strPwd }] = await sql<[{ strPwd: string }]>`select "strPwd" from usuario`

/** Makes the rows what every test starts from. */
async function restore() {
  const rows = (records: { id: number }[]) =>
    sql(records.map(({ id: _, ...row }) => row as Record<string, string>))
  await sql`truncate perfil, modulo, permisos_perfil, usuario restart identity`
  await sql`insert into perfil ${rows(PERFILES)}`
  await sql`insert into modulo ${rows(MODULOS)}`
  await sql`insert into permisos_perfil ${rows(PERMISOS)}`
  await sql`insert into usuario ${rows([ROOT, ANA, EVA].map((user) => ({ ...user, strPwd })))}`
}

/** All rows that there are. */
const stored = () => sql`
  select (select jsonb_agg(perfil order by id) from perfil) as perfil,
    (select jsonb_agg(modulo order by id) from modulo) as modulo,
    (select jsonb_agg(permisos_perfil order by id) from permisos_perfil) as permisos,
    (select jsonb_agg(usuario order by id) from usuario) as usuario
`

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

  describe('succeeds', () => {
    beforeEach(restore)

    it.each([{}, ...same].map((change) => [short(change), change] as const))(
      '%s',
      async (_, change) => {
        expect(await send(endpoint, change)).toStrictEqual({ status: 200, body: answer })
      },
    )
  })

  if (cases.length === 0) return
  describe('answers otherwise, and changes nothing', () => {
    let before: Awaited<ReturnType<typeof stored>>
    let isUnchanged = false
    beforeEach(async () => {
      if (!isUnchanged) {
        await restore()
        before = await stored()
      }
      isUnchanged = false
    })

    it.each(cases.map(([change, reply]) => [short(change), reply.status, change, reply] as const))(
      '%s: %i',
      async (_, __, change, reply) => {
        expect(await send(endpoint, change)).toStrictEqual(reply)
        expect(await stored()).toEqual(before)
        isUnchanged = true
      },
    )
  })
})

it.each([
  ['GET', '/api/nada'],
  ['GET', '/api/permisos/1'],
  ['PATCH', '/api/perfil/2'],
] as const)('%s %s: 404', async (method, path) => {
  const { status, body } = await service.call(method, path)
  expect({ status, body }).toStrictEqual(fails(404, 'Recurso no encontrado'))
})

describe('texts', () => {
  beforeEach(restore)

  it('takes every kind of email address', async () => {
    for (const strCorreo of [...EMAILS, `${'a'.repeat(250)}@x.es`]) {
      expect((await send('PUT /api/usuario/2', { strCorreo })).body).toMatchObject({
        data: { strCorreo },
      })
    }
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
})

describe('the session', () => {
  beforeAll(restore)

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
    const direct = postgres(crippled.config.DATABASE_URL.url, { max: 1, onnotice: () => {} })
    await direct.unsafe(`
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
