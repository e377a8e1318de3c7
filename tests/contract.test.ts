import { createHmac } from 'node:crypto'
import postgres from 'postgres'
import { beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import {
  type Answer,
  DELETED,
  FORBIDDEN,
  MATRIX_REPLACED,
  NOT_FOUND,
  statusCodeAnswer,
  successFalseAnswer,
  UNAUTHENTICATED,
  withoutHeaders,
} from './answers.js'
import { ADMIN, cloneDatabase, JWT_SECRET, PNG, testApp } from './app.js'
import {
  addressOf,
  ENDPOINT_NAMES,
  type EndpointName,
  endpoint,
  FLAGS,
  type Flag,
} from './endpoints.js'

type Json = Record<string, unknown>

/** What differs from an endpoint's valid request: the URL, fields of the body, or both. */
type Change = string | Json | [string, Json]

/** A rule of the contract: each of these requests gets this answer and changes no row. */
interface Rule {
  title: string
  changes: Change[]
  answer: Answer
}

interface Contract {
  /** The id in the path of the valid request. */
  id?: number
  /** The body of the valid request. */
  body?: Json
  /** The body of the answer to the valid request, whose status is 200. */
  answer: Json
  /** Changes that do not change the answer, by the title of their test. */
  same?: Record<string, Change[]>
  rules: Rule[]
}

const rule = (title: string, changes: Change[], answer: Answer): Rule => ({
  title,
  changes,
  answer,
})

/** Returns the rules with the first of their requests only. */
const firstOfEach = (rules: Rule[]) =>
  rules.map((rule) => ({ ...rule, changes: rule.changes.slice(0, 1) }))

/** Returns one change for each of these values. The change gives the value to the field. */
const withField = (field: string, values: unknown[]) => values.map((value) => ({ [field]: value }))

/** Returns a URL for each of these endings. */
const under = (path: string, endings: string[]) => endings.map((ending) => path + ending)

const ok = (body: Json): Answer => ({ status: 200, body: { success: true, ...body } })
const tooLongMessage = (field: string) => `El campo ${field} no puede superar los 255 caracteres`

/** One character more than a text may have. */
const LONG = 'ñ'.repeat(256)
/** Search texts of 255 characters. Each character of the second has two UTF-16 code units. */
const LONGEST_SEARCHES = ['ñ'.repeat(255), '🗝'.repeat(255)]
/** Search texts above the limit of 255 characters. */
const LONGER_SEARCHES = [LONG, '🗝'.repeat(256), 'x'.repeat(12_000)]
const NUL = 'con \0 nulo'
const HASH = expect.stringMatching(/^\$2[aby]\$\d\d\$[./\w]{53}$/)
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

// The rules that several fields share.

const required = (field: string, missing: unknown[] = MISSING) =>
  rule(
    `answers 400 when ${field} is missing`,
    withField(field, missing),
    statusCodeAnswer(400, `El campo ${field} es obligatorio`),
  )

const mustBeText = (field: string) =>
  rule(
    `answers 400 when ${field} is not a string`,
    withField(field, NOT_TEXTS),
    statusCodeAnswer(400, `El campo ${field} debe ser texto`),
  )

const mustBeId = (field: string) =>
  rule(
    `answers 400 when ${field} is not an integer other than 0`,
    withField(field, NOT_NUMBERS),
    statusCodeAnswer(400, `El campo ${field} debe ser un número entero distinto de 0`),
  )

const mustBeBoolean = (field: string, values: unknown[]) =>
  rule(
    `answers 400 when ${field} is not a boolean`,
    withField(field, values),
    statusCodeAnswer(400, `El campo ${field} debe ser booleano`),
  )

const mustHaveAllowedCharacters = (field: string, values: unknown[]) =>
  rule(
    `answers 400 when ${field} has a character that is not allowed`,
    withField(field, values),
    statusCodeAnswer(400, `El campo ${field} contiene caracteres no permitidos`),
  )

const mustNotExceed255Characters = (field: string, values: unknown[] = [LONG]) =>
  rule(
    `answers 400 when ${field} has more than 255 characters`,
    withField(field, values),
    statusCodeAnswer(400, tooLongMessage(field)),
  )

const mustNotExceed255CharactersInSearch = (path: string) =>
  rule(
    'answers 400 when search has more than 255 characters',
    under(`${path}?search=`, LONGER_SEARCHES),
    statusCodeAnswer(400, tooLongMessage('search')),
  )

const mustBePage = (path: string) =>
  rule(
    'answers 400 when page is not an integer of at least 1',
    under(`${path}?page=`, ['0', '-1', '1.5', 'dos', '%20', '1%00', '1&page=1']),
    statusCodeAnswer(400, 'El campo page debe ser un entero mayor o igual a 1'),
  )

const flags = (...granted: Flag[]) =>
  Object.fromEntries(FLAGS.map((flag) => [flag, granted.includes(flag)]))
const BAD_FLAGS = ['true', 'false', 'x', 1, -1, [], {}]
const FALSE_FLAGS = { bitEditar: null, bitConsulta: 0, bitEliminar: '', bitDetalle: false }

// The rows that every test starts from.
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

const NO_CAPTCHA = statusCodeAnswer(400, 'Fallo en la validación del captcha.')
const NO_CREDENTIALS = statusCodeAnswer(400, 'Usuario y contraseña son obligatorios')
const NO_IDS = statusCodeAnswer(400, 'Perfil y Módulo son obligatorios')
const UNKNOWN_REFERENCE = statusCodeAnswer(400, 'El perfil o el módulo no existe')
const DUPLICATE_PERMISO = statusCodeAnswer(409, 'El perfil ya tiene permisos sobre ese módulo')
const BAD_PERMISO_ID = statusCodeAnswer(400, 'ID de permiso inválido')
const BAD_PERFIL_ID = statusCodeAnswer(400, 'ID de perfil inválido')
const BAD_MATRIX_ID = statusCodeAnswer(400, 'ID de perfil requerido')
const MATRIX_FAILED = endpoint('POST /api/permisos/guardar-matriz').unexpected
const NO_PERFIL_NAME = statusCodeAnswer(400, 'El nombre es obligatorio')
const NO_MODULO_NAME = successFalseAnswer(200, 'El nombre del módulo es obligatorio.')
const BAD_MODULO_ID = successFalseAnswer(200, 'ID de módulo inválido.')
const MODULO_NOT_CREATED = endpoint('POST /api/modulo').unexpected
const MODULO_NOT_UPDATED = endpoint('PUT /api/modulo/:id').unexpected
const BAD_USUARIO_ID = statusCodeAnswer(400, 'ID de usuario inválido')
const BAD_EMAIL = statusCodeAnswer(400, 'El campo strCorreo debe ser un correo electrónico')
const LONG_PASSWORD = statusCodeAnswer(400, 'La contraseña no puede superar los 72 bytes')

/** A change that makes `permisos` a list of a valid entry and one more entry. */
const withEntry = (entry: unknown) => ({ permisos: [{ idModulo: 1 }, entry] })
const withModulo = (idModulo: unknown) => withEntry({ idModulo })

const MATRIX_ENTRY_RULES = [
  rule(
    'answers 400 when an entry of permisos is not an object',
    [null, 5, 'x', [], [1]].map(withEntry),
    statusCodeAnswer(400, 'El campo idModulo es obligatorio'),
  ),
  rule(
    'answers 400 when the idModulo of an entry is missing',
    MISSING.map(withModulo),
    statusCodeAnswer(400, 'El campo idModulo es obligatorio'),
  ),
  rule(
    'answers 400 when the idModulo of an entry is not an integer other than 0',
    NOT_NUMBERS.map(withModulo),
    statusCodeAnswer(400, 'El campo idModulo debe ser un número entero distinto de 0'),
  ),
  rule(
    'answers 400 when a flag of an entry is neither a boolean nor falsy',
    BAD_FLAGS.map((bitAgregar) => withEntry({ idModulo: 2, bitAgregar })),
    statusCodeAnswer(400, 'El campo bitAgregar debe ser booleano'),
  ),
]

/** Texts that are not email addresses. */
const NO_EMAILS = [
  ...['ana', '@x.es', 'a@', 'a@x', 'a@.es', 'a@x.', 'a@-x.es', 'a@x-.es', 'a@x_y.es', 'a@@x.es'],
  ...['a b@x.es', 'a..b@x.es', '.a@x.es', 'a.@x.es', 'a@x.es.', 'a@x.es\n', ' a@x.es', 'a@x.es b'],
  ...['a"@x.es', 'a(@x.es', 'a,@x.es', 'a:@x.es', 'a;@x.es', 'a<@x.es', 'a[@x.es', 'a\\@x.es'],
  ...['a\u0007@x.es', 'ana@ejemplo.com,eva@ejemplo.com'],
]
const EMAILS = ['a@b.cc', 'ana.b+c@x-y.ejemplo.com', 'ñu@ñandú.es', "o'brien@1.es"]

/**
 * Texts that begin like the data URI of an image, but that the SDK of the image host does not
 * accept as one.
 */
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

const firstInvalidField = (change: Json, message: string) =>
  rule(
    'answers for the first invalid field in the order of the contract',
    [change],
    statusCodeAnswer(400, message),
  )

const BAD_LAST_FIELDS = { strNumeroCelular: 5, idEstadoUsuario: 'x', imagenBase64: 'x' }

/** The rules that POST and PUT of a user share. Their fields have the same schemas. */
const USUARIO_RULES: Rule[] = [
  firstInvalidField(
    { strNombreUsuario: '', idPerfil: '', ...BAD_LAST_FIELDS },
    'El campo strNombreUsuario es obligatorio',
  ),
  firstInvalidField(
    { idPerfil: '', strCorreo: '', ...BAD_LAST_FIELDS },
    'El campo idPerfil es obligatorio',
  ),
  firstInvalidField({ strCorreo: '', ...BAD_LAST_FIELDS }, 'El campo strCorreo es obligatorio'),
  firstInvalidField(BAD_LAST_FIELDS, 'El campo strNumeroCelular debe ser texto'),
  firstInvalidField(
    { idEstadoUsuario: 'x', imagenBase64: 'x' },
    'El campo idEstadoUsuario debe ser booleano',
  ),
  required('strNombreUsuario', [...MISSING, ' \t']),
  mustBeText('strNombreUsuario'),
  mustHaveAllowedCharacters('strNombreUsuario', [
    NUL,
    'a\ud800',
    ' ana',
    'ana\u3000',
    'a\u200bna',
    'a\u0007na',
    '\u202eana',
  ]),
  mustNotExceed255Characters('strNombreUsuario', [LONG, 'x'.repeat(511)]),
  required('idPerfil'),
  mustBeId('idPerfil'),
  required('strCorreo', [...MISSING, ' ']),
  mustBeText('strCorreo'),
  mustHaveAllowedCharacters('strCorreo', [`${NUL}@ejemplo.com`]),
  mustNotExceed255Characters('strCorreo', [`${LONG}@ejemplo.com`]),
  rule(
    'answers 400 when strCorreo is not an email address',
    withField('strCorreo', NO_EMAILS),
    BAD_EMAIL,
  ),
  mustBeText('strNumeroCelular'),
  mustHaveAllowedCharacters('strNumeroCelular', [NUL, '\ud800']),
  mustNotExceed255Characters('strNumeroCelular'),
  mustBeBoolean('idEstadoUsuario', [1, 0, 'true', '', []]),
  mustBeText('strPwd'),
  mustHaveAllowedCharacters('strPwd', [NUL]),
  rule(
    'answers 400 when strPwd has more than 72 bytes',
    withField('strPwd', ['x'.repeat(73), `${'ñ'.repeat(36)}x`]),
    LONG_PASSWORD,
  ),
  rule(
    'validates strPwd before it looks for a duplicate email',
    [{ strPwd: 'x'.repeat(73), strCorreo: EVA.strCorreo }],
    LONG_PASSWORD,
  ),
  mustBeText('imagenBase64'),
  rule(
    'answers 400 when imagenBase64 does not begin with data:image',
    withField('imagenBase64', [
      '/etc/hostname',
      'https://ejemplo.com/a.png',
      'data:text/plain;base64,QQ==',
      ` ${PNG}`,
      'x',
    ]),
    statusCodeAnswer(400, 'El campo imagenBase64 debe empezar por data:image'),
  ),
  rule(
    'answers 400 when imagenBase64 is not a complete image in base64',
    withField('imagenBase64', NO_IMAGES),
    statusCodeAnswer(400, 'El campo imagenBase64 debe ser una imagen completa en base64'),
  ),
  rule(
    'answers 500 when no profile has the id idPerfil',
    withField('idPerfil', UNKNOWN_IDS),
    statusCodeAnswer(500, 'El perfil indicado no existe'),
  ),
  rule(
    'answers 500 when another user has the email address, in upper or lower case',
    withField('strCorreo', [EVA.strCorreo, 'EVA@Ejemplo.com']),
    statusCodeAnswer(500, 'El correo electrónico ya está registrado'),
  ),
  rule(
    'answers 500 when another user has the name, in upper or lower case',
    withField('strNombreUsuario', ['eva', 'EVA']),
    statusCodeAnswer(500, 'El nombre de usuario ya está registrado'),
  ),
  rule(
    'names the email address when another user has both the address and the name',
    [{ strNombreUsuario: 'eva', strCorreo: EVA.strCorreo }],
    statusCodeAnswer(500, 'El correo electrónico ya está registrado'),
  ),
]

/** The rules that POST and PUT of a module share. Their field has the same schema. */
const MODULO_NAME_RULES: Rule[] = [
  rule(
    'answers success false when strNombreModulo is missing, falsy, only whitespace or has a NUL',
    withField('strNombreModulo', [undefined, null, '', '  ', '\t\n\u00a0', 0, false, NUL]),
    NO_MODULO_NAME,
  ),
  mustBeText('strNombreModulo'),
  rule(
    'answers success false when strNombreModulo has more than 255 characters',
    [{ strNombreModulo: LONG }],
    successFalseAnswer(200, tooLongMessage('strNombreModulo')),
  ),
]

/** The endpoints that the contract describes. */
const CONTRACT = {
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
    same: {
      'ignores unknown fields': [{ sobra: 1 }],
      'accepts a captcha token of 8,192 characters': [{ captchaToken: 'x'.repeat(8192) }],
    },
    rules: [
      rule(
        'answers 400 when the captcha token is missing, invalid or rejected',
        withField('captchaToken', [
          undefined,
          null,
          '',
          5,
          true,
          [],
          {},
          'rechazar',
          'x'.repeat(8193),
        ]),
        NO_CAPTCHA,
      ),
      rule(
        'verifies the captcha before it reads the credentials',
        [{ captchaToken: 'rechazar', strNombreUsuario: 'nadie', strPwd: undefined }],
        NO_CAPTCHA,
      ),
      rule(
        'answers 400 when strNombreUsuario is missing',
        withField('strNombreUsuario', MISSING),
        NO_CREDENTIALS,
      ),
      rule('answers 400 when strPwd is missing', withField('strPwd', MISSING), NO_CREDENTIALS),
      rule(
        'answers 401 when no active user has exactly this name',
        withField('strNombreUsuario', ['nadie', 'eva', 'ANA', ' ana', NUL, LONG]),
        statusCodeAnswer(401, 'El usuario no existe o su estado es the service.'),
      ),
      rule(
        'answers 401 when the password is wrong',
        withField('strPwd', ['otra clave', 'x'.repeat(73), NUL, LONG]),
        statusCodeAnswer(401, 'Usuario o contraseña incorrectos.'),
      ),
    ],
  },

  'GET /api/permisos': {
    answer: { success: true, data: PERMISOS.map(joined), totalPages: 1 },
    same: {
      'takes an empty page for page 1': ['/api/permisos?page='],
      'returns page 1': ['/api/permisos?page=1'],
      'ignores unknown parameters': ['/api/permisos?sobra=1'],
    },
    rules: [
      mustBePage('/api/permisos'),
      rule(
        'returns an empty list beyond the last page',
        under('/api/permisos?page=', ['2', '99999999999999999999']),
        ok({ data: [], totalPages: 1 }),
      ),
    ],
  },

  'POST /api/permisos': {
    body: { idPerfil: 3, idModulo: 6, bitAgregar: true },
    answer: { success: true, data: { id: 4, idPerfil: 3, idModulo: 6, ...flags('bitAgregar') } },
    same: {
      'accepts ids as text': [{ idPerfil: '3', idModulo: '6' }],
      'stores a falsy flag as false': [FALSE_FLAGS],
      'ignores unknown fields and the id': [{ id: 99, sobra: 1, nombrePerfil: 'x' }],
    },
    rules: [
      rule(
        'answers for a missing id before it answers for an invalid field',
        [
          { idPerfil: undefined, bitAgregar: 'x' },
          { idPerfil: 'dos', idModulo: undefined },
        ],
        NO_IDS,
      ),
      rule('answers 400 when idPerfil is missing', withField('idPerfil', MISSING), NO_IDS),
      mustBeId('idPerfil'),
      rule('answers 400 when idModulo is missing', withField('idModulo', MISSING), NO_IDS),
      mustBeId('idModulo'),
      mustBeBoolean('bitAgregar', BAD_FLAGS),
      mustBeBoolean('bitDetalle', ['x']),
      rule(
        'answers 400 when no profile has the id idPerfil',
        withField('idPerfil', UNKNOWN_IDS),
        UNKNOWN_REFERENCE,
      ),
      rule(
        'answers 400 when no module has the id idModulo',
        withField('idModulo', UNKNOWN_IDS),
        UNKNOWN_REFERENCE,
      ),
      rule(
        'answers 409 when the profile already has a record for the module',
        [{ idModulo: 5 }],
        DUPLICATE_PERMISO,
      ),
    ],
  },

  'PUT /api/permisos/:id': {
    id: 1,
    body: { idPerfil: 3, idModulo: 6, bitAgregar: true },
    answer: { success: true, data: { id: 1, idPerfil: 3, idModulo: 6, ...flags('bitAgregar') } },
    same: {
      'accepts ids as text': [{ idPerfil: '3', idModulo: '6' }],
      'stores a falsy flag as false': [FALSE_FLAGS],
      'ignores unknown fields and an id in the body': [{ id: 99, sobra: 1 }],
    },
    rules: [
      rule(
        'answers 400 when the id in the path is not an integer other than 0',
        under('/api/permisos/', BAD_PATH_IDS),
        BAD_PERMISO_ID,
      ),
      rule(
        'validates the body before it looks for the record',
        [['/api/permisos/999', { idModulo: undefined }]],
        NO_IDS,
      ),
      rule('answers 400 when idPerfil is missing', withField('idPerfil', MISSING), NO_IDS),
      mustBeId('idPerfil'),
      rule('answers 400 when idModulo is missing', withField('idModulo', MISSING), NO_IDS),
      mustBeBoolean('bitAgregar', BAD_FLAGS),
      rule(
        'answers 404 when no record has the id',
        under('/api/permisos/', UNKNOWN_PATH_IDS),
        statusCodeAnswer(404, 'Permiso no encontrado'),
      ),
      rule(
        'answers 400 when no profile has the id idPerfil',
        withField('idPerfil', UNKNOWN_IDS),
        UNKNOWN_REFERENCE,
      ),
      rule(
        'answers 400 when no module has the id idModulo',
        withField('idModulo', UNKNOWN_IDS),
        UNKNOWN_REFERENCE,
      ),
      rule(
        'answers 400 when neither the record nor the module exists',
        [['/api/permisos/999', { idModulo: 999 }]],
        UNKNOWN_REFERENCE,
      ),
      rule(
        'answers 409 when the profile has another record for the module',
        [{ idPerfil: 2, idModulo: 6 }],
        DUPLICATE_PERMISO,
      ),
    ],
  },

  'DELETE /api/permisos/:id': {
    id: 1,
    answer: DELETED.body,
    rules: [
      rule(
        'answers 400 when the id in the path is not an integer other than 0',
        under('/api/permisos/', BAD_PATH_IDS),
        BAD_PERMISO_ID,
      ),
      rule(
        'gives the answer to a deletion even when no record has the id',
        under('/api/permisos/', UNKNOWN_PATH_IDS),
        DELETED,
      ),
    ],
  },

  'GET /api/permisos/mis-permisos/:idPerfil': {
    id: 2,
    answer: {
      success: true,
      permisos: {
        'CAJA_10%': { nombreModulo: 'CAJA_10%', ...flags('bitAgregar', 'bitConsulta') },
        'ALMACÉN \\ Ñ': { nombreModulo: 'ALMACÉN \\ Ñ', ...flags('bitDetalle') },
      },
    },
    rules: [
      rule(
        'answers 400 when the id in the path is not an integer other than 0',
        under('/api/permisos/mis-permisos/', BAD_PATH_IDS),
        BAD_PERFIL_ID,
      ),
      rule(
        'returns an empty map when no profile has the id',
        under('/api/permisos/mis-permisos/', UNKNOWN_PATH_IDS),
        ok({ permisos: {} }),
      ),
      rule(
        'returns an empty map when the profile has no records',
        ['/api/permisos/mis-permisos/1'],
        ok({ permisos: {} }),
      ),
    ],
  },

  'GET /api/permisos/por-perfil/:idPerfil': {
    id: 2,
    answer: { success: true, data: PERMISOS.slice(0, 2) },
    rules: [
      rule(
        'answers 400 when the id in the path is not an integer other than 0',
        under('/api/permisos/por-perfil/', BAD_PATH_IDS),
        BAD_PERFIL_ID,
      ),
      rule(
        'returns an empty list when no profile has the id',
        under('/api/permisos/por-perfil/', UNKNOWN_PATH_IDS),
        ok({ data: [] }),
      ),
      rule(
        'returns an empty list when the profile has no records',
        ['/api/permisos/por-perfil/1'],
        ok({ data: [] }),
      ),
    ],
  },

  'POST /api/permisos/guardar-matriz': {
    body: { idPerfil: 2, permisos: [{ idModulo: 1, bitAgregar: true }] },
    answer: MATRIX_REPLACED.body,
    same: {
      'accepts idPerfil as text and ignores unknown fields': [{ idPerfil: '2', sobra: 1 }],
      'accepts idModulo as text, falsy flags and unknown fields in an entry': [
        { permisos: [{ idModulo: '1', sobra: 1, ...FALSE_FLAGS }] },
      ],
      'accepts a missing or empty list': [
        { permisos: undefined },
        { permisos: null },
        { permisos: [] },
      ],
      'accepts an empty list for an unknown profile': [
        { idPerfil: 999, permisos: [] },
        { idPerfil: 1e300, permisos: undefined },
      ],
    },
    rules: [
      rule(
        'answers 400 when idPerfil is missing or not an integer other than 0',
        withField('idPerfil', [...MISSING, ...NOT_NUMBERS]),
        BAD_MATRIX_ID,
      ),
      rule('validates idPerfil before permisos', [{ idPerfil: 0, permisos: 'x' }], BAD_MATRIX_ID),
      rule(
        'answers 400 when permisos is not a list',
        withField('permisos', ['x', 5, true, {}]),
        statusCodeAnswer(400, 'El campo permisos debe ser una lista'),
      ),
      ...MATRIX_ENTRY_RULES,
      rule(
        'answers 500 when no module has the idModulo of an entry',
        UNKNOWN_IDS.map(withModulo),
        MATRIX_FAILED,
      ),
      rule(
        'answers 500 when no profile has the id idPerfil',
        withField('idPerfil', UNKNOWN_IDS),
        MATRIX_FAILED,
      ),
      rule(
        'answers 500 when two entries have the same idModulo',
        [{ permisos: [{ idModulo: 1 }, { idModulo: 2 }, { idModulo: '1' }] }],
        MATRIX_FAILED,
      ),
    ],
  },

  'GET /api/perfil': {
    answer: { success: true, ...perfiles(3, 2, 1) },
    same: {
      'ignores empty parameters': ['/api/perfil?page=&search=&isAdmin='],
      'ignores unknown parameters': ['/api/perfil?page=1&sobra=1'],
    },
    rules: [
      mustBePage('/api/perfil'),
      rule(
        'answers 400 when isAdmin is neither true nor false',
        under('/api/perfil?isAdmin=', ['TRUE', '1', 'x', '%20', 'true%00', 'true&isAdmin=true']),
        statusCodeAnswer(400, 'El campo isAdmin debe ser true o false'),
      ),
      rule(
        'returns an empty list beyond the last page',
        under('/api/perfil?page=', ['2', '99999999999999999999']),
        ok({ data: [], totalPages: 1 }),
      ),
      rule(
        'returns only administrator profiles when isAdmin is true',
        ['/api/perfil?isAdmin=true'],
        ok(perfiles(1)),
      ),
      rule(
        'returns only the other profiles when isAdmin is false',
        ['/api/perfil?isAdmin=false'],
        ok(perfiles(3, 2)),
      ),
      rule(
        'returns the profiles that match both filters',
        ['/api/perfil?isAdmin=false&search=ventas'],
        ok(perfiles(2)),
      ),
      rule(
        'returns an empty list when no profile matches both filters',
        ['/api/perfil?isAdmin=true&search=ventas'],
        ok(perfiles()),
      ),
      rule(
        'ignores case in a search, and takes _ and \\ as ordinary characters',
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
      rule(
        'ignores case in a search, and takes % as an ordinary character',
        under('/api/perfil?search=', ['%25', '0%25', 'VENTAS', 's%201']),
        ok(perfiles(2)),
      ),
      rule(
        'returns an empty list when no name contains the text',
        under('/api/perfil?search=', ['nada', 'V%25s', '__', '%5C%25', '%27%20or%201%3D1']),
        ok(perfiles()),
      ),
      rule(
        'accepts a search text of 255 characters',
        under('/api/perfil?search=', LONGEST_SEARCHES),
        ok(perfiles()),
      ),
      mustNotExceed255CharactersInSearch('/api/perfil'),
    ],
  },

  'GET /api/perfil/list': {
    answer: {
      success: true,
      data: PERFILES.map(({ id, strNombrePerfil }) => ({ id, strNombrePerfil })),
    },
    same: { 'ignores every parameter': ['/api/perfil/list?page=0&search=x'] },
    rules: [],
  },

  'PUT /api/perfil/:id': {
    id: 2,
    body: { strNombrePerfil: ' Compras ', bitAdministrador: false },
    answer: {
      success: true,
      data: { id: 2, strNombrePerfil: ' Compras ', bitAdministrador: false },
    },
    same: { 'ignores unknown fields and an id in the body': [{ id: 99, sobra: 1 }] },
    rules: [
      rule(
        'answers 400 when the id in the path is not an integer other than 0',
        under('/api/perfil/', BAD_PATH_IDS),
        BAD_PERFIL_ID,
      ),
      rule(
        'answers 400 when strNombrePerfil is missing or only whitespace',
        withField('strNombrePerfil', [undefined, null, '', '  ', '\t\n\u00a0']),
        NO_PERFIL_NAME,
      ),
      rule(
        'validates strNombrePerfil before bitAdministrador',
        [{ strNombrePerfil: undefined, bitAdministrador: undefined }],
        NO_PERFIL_NAME,
      ),
      rule(
        'validates the body before it looks for the profile',
        [['/api/perfil/999', { strNombrePerfil: '' }]],
        NO_PERFIL_NAME,
      ),
      mustBeText('strNombrePerfil'),
      mustHaveAllowedCharacters('strNombrePerfil', [NUL, '\udc00x']),
      mustNotExceed255Characters('strNombrePerfil'),
      required('bitAdministrador', [undefined, null]),
      mustBeBoolean('bitAdministrador', [0, 1, 'true', '', []]),
      rule(
        'answers 404 when no profile has the id',
        under('/api/perfil/', UNKNOWN_PATH_IDS),
        statusCodeAnswer(404, 'Perfil no encontrado'),
      ),
    ],
  },

  'GET /api/modulo': {
    answer: { success: true, data: MODULOS.slice(1).reverse(), totalPages: 2 },
    same: {
      'ignores empty parameters': ['/api/modulo?page=&search='],
      'ignores unknown parameters': ['/api/modulo?page=1&sobra=1'],
    },
    rules: [
      mustBePage('/api/modulo'),
      rule(
        'returns the sixth module on page 2',
        ['/api/modulo?page=2'],
        ok({ data: MODULOS.slice(0, 1), totalPages: 2 }),
      ),
      rule(
        'returns an empty list beyond the last page',
        under('/api/modulo?page=', ['3', '99999999999999999999']),
        ok({ data: [], totalPages: 2 }),
      ),
      rule(
        'ignores case in a search, and takes \\ as an ordinary character',
        under('/api/modulo?search=', ['almac%C3%A9n', '%C3%89N', '%C3%B1', '%5C', '%20%5C%20']),
        ok(modulos(6)),
      ),
      rule(
        'ignores case in a search, and takes % and _ as ordinary characters',
        under('/api/modulo?search=', ['%25', '_', 'caja', 'a_1']),
        ok(modulos(5)),
      ),
      rule(
        'returns an empty list when no name contains the text',
        under('/api/modulo?search=', ['nada', 'c%25a', '____', '%5C_', '%27%20or%201%3D1']),
        ok(modulos()),
      ),
      rule(
        'accepts a search text of 255 characters',
        under('/api/modulo?search=', LONGEST_SEARCHES),
        ok(modulos()),
      ),
      mustNotExceed255CharactersInSearch('/api/modulo'),
    ],
  },

  'GET /api/modulo/list': {
    answer: { success: true, data: MODULOS },
    same: { 'ignores every parameter': ['/api/modulo/list?page=0&search=x'] },
    rules: [],
  },

  'POST /api/modulo': {
    body: { strNombreModulo: ' módulo ñandú ' },
    answer: { success: true, data: { id: 7, strNombreModulo: ' MÓDULO ÑANDÚ ' } },
    same: { 'ignores unknown fields and the id': [{ id: 99, sobra: 1 }] },
    rules: [
      ...MODULO_NAME_RULES,
      rule(
        'answers success false when another module has the name, in upper or lower case',
        withField('strNombreModulo', ['USUARIO', 'almacén \\ ñ']),
        MODULO_NOT_CREATED,
      ),
    ],
  },

  'PUT /api/modulo/:id': {
    id: 5,
    body: { strNombreModulo: 'razón social' },
    answer: { success: true, data: { id: 5, strNombreModulo: 'RAZÓN SOCIAL' } },
    same: { 'ignores unknown fields and an id in the body': [{ id: 99, sobra: 1 }] },
    rules: [
      rule(
        'answers success false when the id in the path is not an integer other than 0',
        under('/api/modulo/', BAD_PATH_IDS),
        BAD_MODULO_ID,
      ),
      ...firstOfEach(MODULO_NAME_RULES),
      rule(
        'validates the body before it looks for the module',
        [['/api/modulo/999', { strNombreModulo: '' }]],
        NO_MODULO_NAME,
      ),
      rule(
        'answers success false when another module has the name, in upper or lower case',
        [{ strNombreModulo: 'almacén \\ ñ' }],
        MODULO_NOT_UPDATED,
      ),
      rule(
        'answers success true without data when no module has the id',
        under('/api/modulo/', UNKNOWN_PATH_IDS),
        ok({}),
      ),
      rule(
        'looks for the module before it looks for a duplicate name',
        [['/api/modulo/999', { strNombreModulo: 'USUARIO' }]],
        ok({}),
      ),
    ],
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
    same: {
      'accepts idPerfil as text': [{ idPerfil: '2' }],
      'takes null for an optional field as omitted': [
        { strNumeroCelular: null, idEstadoUsuario: null, imagenBase64: null },
      ],
      'takes an empty image as omitted': [{ imagenBase64: '' }],
      'ignores unknown fields, the id and imagenUrl': [
        { id: 99, sobra: 1, imagenUrl: 'https://ejemplo.com/a.png' },
      ],
      'accepts a password of 72 bytes': [{ strPwd: 'ñ'.repeat(36) }],
    },
    rules: [
      ...USUARIO_RULES,
      required('strPwd'),
      firstInvalidField({ strPwd: '', strCorreo: '' }, 'El campo strPwd es obligatorio'),
    ],
  },

  'PUT /api/usuario/:id': {
    id: 2,
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
    same: {
      'accepts idPerfil as text': [{ idPerfil: '3' }],
      'takes null for an optional field as omitted': [
        { strNumeroCelular: null, strPwd: null, imagenBase64: null },
      ],
      'takes an empty password and an empty image as omitted': [{ strPwd: '', imagenBase64: '' }],
      'ignores unknown fields, an id in the body and imagenUrl': [
        { id: 99, sobra: 1, imagenUrl: 'https://ejemplo.com/a.png' },
      ],
      'accepts a password of 72 bytes': [{ strPwd: 'x'.repeat(72) }],
    },
    rules: [
      rule(
        'answers 400 when the id in the path is not an integer other than 0',
        under('/api/usuario/', BAD_PATH_IDS),
        BAD_USUARIO_ID,
      ),
      ...firstOfEach(USUARIO_RULES),
      required('idEstadoUsuario', [undefined, null]),
      firstInvalidField(
        { idEstadoUsuario: null, strPwd: 5 },
        'El campo idEstadoUsuario es obligatorio',
      ),
      rule(
        'validates the body before it looks for the user',
        [['/api/usuario/999', { strCorreo: 'ana' }]],
        BAD_EMAIL,
      ),
      rule(
        'answers success true without data when no user has the id',
        under('/api/usuario/', UNKNOWN_PATH_IDS),
        ok({}),
      ),
      rule(
        'looks for the user before it looks for the profile or a duplicate email',
        [['/api/usuario/999', { strCorreo: EVA.strCorreo, idPerfil: 999 }]],
        ok({}),
      ),
    ],
  },
} satisfies Partial<Record<EndpointName, Contract>>

type ContractName = keyof typeof CONTRACT
const CONTRACT_NAMES = Object.keys(CONTRACT) as ContractName[]
const GUARDED = CONTRACT_NAMES.filter((name) => endpoint(name).needs !== 'nothing')
const OTHERS = ENDPOINT_NAMES.filter((name) => !(name in CONTRACT))

const contractOf = (name: ContractName): Contract => CONTRACT[name]

const service = await testApp()
const { sql } = service
const strPwd = await service.passwords.hash(ADMIN.strPwd)

/** Replaces all rows by those that every test starts from. */
async function restore() {
  const rows = (records: { id: number }[]) =>
    sql(records.map(({ id: _, ...row }) => row as Record<string, string>))
  await sql`truncate perfil, modulo, permisos_perfil, usuario restart identity`
  await sql`insert into perfil ${rows(PERFILES)}`
  await sql`insert into modulo ${rows(MODULOS)}`
  await sql`insert into permisos_perfil ${rows(PERMISOS)}`
  await sql`insert into usuario ${rows([ROOT, ANA, EVA].map((user) => ({ ...user, strPwd })))}`
}

/** Reads all rows of all tables. */
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

/** Sends an endpoint's valid request with a change. */
async function send(
  name: ContractName,
  change: Change = {},
  { through = service, ...options }: Options = {},
): Promise<Answer> {
  const { id, body } = contractOf(name)
  const { method, url } = addressOf(name, id)
  const { url: changedUrl = url, fields } = readChange(change)
  const changedBody = body && { ...body, ...fields }
  return withoutHeaders(await through.call(method, changedUrl, changedBody, options))
}

/** Splits a change into the URL, undefined when it stays, and the changed fields of the body. */
function readChange(change: Change): { url?: string; fields: Json } {
  if (typeof change === 'string') return { url: change, fields: {} }
  if (!Array.isArray(change)) return { fields: change }
  const [url, fields] = change
  return { url, fields }
}

/** Sends a text as the body, to the URL of an endpoint's valid request. */
async function sendText(name: ContractName, text: string, headers: object, token?: string | null) {
  const { method, url } = addressOf(name, contractOf(name).id)
  const options = { headers, ...(token !== undefined && { token }) }
  return withoutHeaders(await service.call(method, url, text, options))
}

/** Returns a change as JSON for a title, cut after 90 characters. */
const short = (value: unknown) => {
  const text = JSON.stringify(value, (_, item) => (item === undefined ? 'omitted' : item))
  return text.length > 90 ? `${text.slice(0, 90)}…` : text
}

describe.each(CONTRACT_NAMES)('%s', (name) => {
  const { answer, same = {}, rules } = contractOf(name)

  describe('with status 200,', () => {
    beforeEach(restore)

    const requests = Object.entries({ 'answers the valid request': [{}], ...same })
    const cases = requests.flatMap(([title, changes]) =>
      changes.map((change) => [title, short(change), change] as const),
    )
    it.each(cases)('%s: %s', async (_title, _change, change) => {
      expect(await send(name, change)).toStrictEqual({ status: 200, body: answer })
    })
  })

  if (rules.length === 0) return
  describe('without changing any row,', () => {
    let before: Awaited<ReturnType<typeof stored>>
    let isUnchanged = false
    // A test that succeeds has changed nothing, so the rows are restored only before the first test
    // and after a failure.
    beforeEach(async () => {
      if (!isUnchanged) {
        await restore()
        before = await stored()
      }
      isUnchanged = false
    })

    it.each(rules)('$title', async ({ changes, answer: expected }) => {
      for (const change of changes) {
        expect(await send(name, change), short(change)).toStrictEqual(expected)
      }
      expect(await stored()).toEqual(before)
      isUnchanged = true
    })
  })
})

it.each([
  ['GET', '/api/nada'],
  ['GET', '/api/permisos/1'],
  ['PATCH', '/api/perfil/2'],
] as const)('answers 404 where there is no endpoint: %s %s', async (method, path) => {
  expect(withoutHeaders(await service.call(method, path))).toStrictEqual(NOT_FOUND)
})

describe('texts', () => {
  beforeEach(restore)

  it('accepts every kind of email address', async () => {
    for (const strCorreo of [...EMAILS, `${'a'.repeat(250)}@x.es`]) {
      expect((await send('PUT /api/usuario/:id', { strCorreo })).body).toMatchObject({
        data: { strCorreo },
      })
    }
  })

  it('stores texts of 255 characters unchanged, however many bytes they have', async () => {
    const text = '🗝'.repeat(255)
    const words = { strNombreUsuario: text, strNumeroCelular: text }
    expect(await send('PUT /api/perfil/:id', { strNombrePerfil: text })).toStrictEqual(
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

  /** Returns `token` with the payload of the token `other`. */
  function forged(token: string, other: string) {
    const [header, , signature] = token.split('.')
    const [, payload] = other.split('.')
    return [header, payload, signature].join('.')
  }

  const INVALID: Record<string, string | null> = {
    'no token': null,
    empty: '',
    'no JWT': 'x',
    'forged payload': forged(jwt(), jwt({ id: 2 })),
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
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  it.each(GUARDED)(
    '%s answers 401 to an invalid session before it reads the body',
    async (name) => {
      const before = await stored()
      const got: Record<string, Answer> = {}
      const want: Record<string, Answer> = {}
      for (const [kind, token] of Object.entries(INVALID)) {
        got[`${kind} in the cookie`] = await send(name, {}, { token })
        want[`${kind} in the cookie`] = UNAUTHENTICATED
        if (token === null) continue
        // A header with Bearer takes precedence over the cookie, even if its token is empty.
        const options = { headers: bearer(token), token: jwt() }
        got[`${kind} as Bearer`] = await send(name, {}, options)
        want[`${kind} as Bearer`] = UNAUTHENTICATED
      }
      if (contractOf(name).body) {
        const json = { 'content-type': 'application/json' }
        got.malformed = await sendText(name, '{', json, null)
        got.huge = await sendText(name, 'x'.repeat(2 ** 21), json, null)
        got.text = await sendText(name, 'x', { 'content-type': 'text/plain' }, null)
        Object.assign(want, {
          malformed: UNAUTHENTICATED,
          huge: UNAUTHENTICATED,
          text: UNAUTHENTICATED,
        })
      }
      expect(got).toStrictEqual(want)
      expect(await stored()).toEqual(before)
    },
  )

  it('accepts a valid token as cookie or Bearer, and prefers Bearer', async () => {
    const answer = { status: 200, body: CONTRACT['GET /api/perfil'].answer }
    for (const options of [
      { token: jwt() },
      { token: null, headers: bearer(jwt()) },
      { token: 'x', headers: bearer(jwt()) },
    ])
      expect(await send('GET /api/perfil', {}, options)).toStrictEqual(answer)
  })

  it('does not matter at the login', async () => {
    const answer = { status: 200, body: CONTRACT['POST /api/auth/login'].answer }
    for (const token of [null, 'x', jwt({ id: 99 })])
      expect(await send('POST /api/auth/login', {}, { token })).toStrictEqual(answer)
  })

  it.each(GUARDED)('%s checks its permission, if any, before it reads the body', async (name) => {
    // The token has the id of the administrator's profile, but the profile in the database decides.
    const token = jwt({ id: 2, idPerfil: 1 })
    const before = await stored()
    const { answer, body } = contractOf(name)
    const isOpen = endpoint(name).needs === 'session' || endpoint(name).isOpenToOwner
    const reply = await send(name, {}, { token })
    expect(reply).toStrictEqual(isOpen ? { status: 200, body: answer } : FORBIDDEN)
    if (body) {
      const malformed = await sendText(name, '{', { 'content-type': 'application/json' }, token)
      expect(malformed).toStrictEqual(FORBIDDEN)
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
    // Each table becomes a view. The look-up of sessions can read it; every other statement fails.
    await direct.unsafe(`
      create function is_lookup() returns boolean language plpgsql as $$ begin
        if current_query() !~ 'lookup.ver' then
          raise exception 'only look-ups succeed';
        end if;
        return true;
      end $$;
    `)
    for (const table of ['usuario', 'perfil', 'modulo', 'permisos_perfil']) {
      await direct.unsafe(`
        alter table ${table} rename to ${table}_guardada;
        create view ${table} as select * from ${table}_guardada where (select is_lookup());
      `)
    }
    await direct.unsafe(`
      create function has_flag(p_permiso permisos_perfil, p_accion text) returns boolean
      language sql as 'select true'
    `)
    await direct.end()
  })

  it('makes every endpoint answer its unexpected failure when no statement can be sent', async () => {
    const { adminToken: token } = gone
    // Each request waits 2.5 s for a connection, so all are sent at once.
    const contract = CONTRACT_NAMES.map(async (name) => {
      const answer = await send(name, {}, { through: gone, token })
      expect(answer, name).toStrictEqual(endpoint(name).unexpected)
    })
    const others = OTHERS.map(async (name) => {
      const { method, url } = addressOf(name)
      const { body, unexpected } = endpoint(name)
      const answer = await gone.call(method, url, body, { token })
      expect(withoutHeaders(answer), name).toStrictEqual(unexpected)
    })
    await Promise.all([...contract, ...others])
  })

  it.each(CONTRACT_NAMES)(
    'makes %s answer its unexpected failure when its query fails',
    async (name) => {
      const logRead = crippled.readLog().length
      const answer = await send(name, {}, { through: crippled })
      expect(answer).toStrictEqual(endpoint(name).unexpected)
      expect(crippled.readLog().slice(logRead)).toContain('only look-ups succeed')
    },
  )
})
