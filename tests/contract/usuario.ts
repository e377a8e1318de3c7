import { expect } from 'vitest'
import { DELETED, statusCodeAnswer } from '../answers.js'
import { PNG } from '../app.js'
import { ANA, EVA, PERFILES, ROOT } from './rows.js'
import {
  type Contracts,
  firstOfEach,
  type Json,
  LONG,
  MISSING,
  mustBeBoolean,
  mustBeId,
  mustBePage,
  mustBeText,
  mustHaveAllowedCharacters,
  mustNotExceed255Characters,
  mustNotExceed255CharactersInSearch,
  NUL,
  ok,
  pathIdMustBeInteger,
  type Rule,
  required,
  rule,
  UNKNOWN_IDS,
  under,
  unknownPathId,
  withField,
} from './rules.js'

const HASH = expect.stringMatching(/^\$2[aby]\$\d\d\$[./\w]{53}$/)

const BAD_USUARIO_ID = statusCodeAnswer(400, 'ID de usuario inválido')
const BAD_EMAIL = statusCodeAnswer(400, 'El campo strCorreo debe ser un correo electrónico')
const LONG_PASSWORD = statusCodeAnswer(400, 'La contraseña no puede superar los 72 bytes')

/** Texts that are not email addresses. */
const NO_EMAILS = [
  ...['ana', '@x.es', 'a@', 'a@x', 'a@.es', 'a@x.', 'a@-x.es', 'a@x-.es', 'a@x_y.es', 'a@@x.es'],
  ...['a b@x.es', 'a..b@x.es', '.a@x.es', 'a.@x.es', 'a@x.es.', 'a@x.es\n', ' a@x.es', 'a@x.es b'],
  ...['a"@x.es', 'a(@x.es', 'a,@x.es', 'a:@x.es', 'a;@x.es', 'a<@x.es', 'a[@x.es', 'a\\@x.es'],
  ...['a\u0007@x.es', 'a\u200b@x.es', 'a@x\u3164.es', 'ana@ejemplo.com,eva@ejemplo.com'],
]

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
    `answers “${message}” when that field is the first invalid one`,
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
  mustBeBoolean('idEstadoUsuario', [1, '', 'true']),
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
    withField('strCorreo', [EVA.strCorreo, EVA.strCorreo.toUpperCase()]),
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

/** Returns a user as it is read. */
const visto = (usuario: typeof ROOT | typeof ANA) => ({
  ...usuario,
  nombrePerfil: PERFILES[usuario.idPerfil - 1]?.strNombrePerfil,
})
const vistos = (...usuarios: Parameters<typeof visto>[0][]) => ({
  data: usuarios.map(visto),
  totalPages: Math.ceil(usuarios.length / 5),
})

export const USUARIO_ENDPOINTS = {
  'GET /api/usuario': {
    answer: { success: true, ...vistos(EVA, ANA, ROOT) },
    same: {
      'ignores empty parameters': ['/api/usuario?page=&search=&idPerfil=&estado='],
      'accepts a slash at the end of the path': ['/api/usuario/'],
    },
    rules: [
      mustBePage('/api/usuario'),
      rule(
        'returns an empty list beyond the last page',
        ['/api/usuario?page=2'],
        ok({ data: [], totalPages: 1 }),
      ),
      mustNotExceed255CharactersInSearch('/api/usuario'),
      rule(
        'answers 400 when idPerfil is not an integer other than 0',
        ['/api/usuario?idPerfil=x'],
        statusCodeAnswer(400, 'El campo idPerfil debe ser un número entero distinto de 0'),
      ),
      rule(
        'answers 400 when estado is neither true nor false',
        ['/api/usuario?estado=si'],
        statusCodeAnswer(400, 'El campo estado debe ser true o false'),
      ),
      rule(
        'returns the users whose name or email contains the text',
        under('/api/usuario?search=', ['EVA', 'CORREO@']),
        ok(vistos(EVA)),
      ),
      rule('returns the inactive users', ['/api/usuario?estado=false'], ok(vistos(EVA))),
      rule(
        'returns the users that match all filters',
        ['/api/usuario?search=ejemplo&idPerfil=2&estado=true'],
        ok(vistos(ANA)),
      ),
      rule(
        'returns an empty list when no user matches',
        ['/api/usuario?search=nada', '/api/usuario?idPerfil=99999999999'],
        ok(vistos()),
      ),
    ],
  },

  'GET /api/usuario/:id': {
    id: 2,
    answer: { success: true, data: visto(ANA) },
    rules: [
      rule('answers 400 when the id is 0', ['/api/usuario/0'], BAD_USUARIO_ID),
      unknownPathId('/api/usuario/', statusCodeAnswer(404, 'Usuario no encontrado')),
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
    writes: { usuario: [4] },
    same: {
      'accepts idPerfil as text': [{ idPerfil: '2' }],
      'takes null for an optional field as omitted': [
        { strNumeroCelular: null, idEstadoUsuario: null, imagenBase64: null },
      ],
      'takes an empty image as omitted': [{ imagenBase64: '' }],
      'ignores imagenUrl': [{ imagenUrl: 'https://ejemplo.com/a.png' }],
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
    writes: { usuario: [2] },
    same: {
      'takes null for an optional field as omitted': [
        { strNumeroCelular: null, strPwd: null, imagenBase64: null },
      ],
      'takes an empty password and an empty image as omitted': [{ strPwd: '', imagenBase64: '' }],
    },
    rules: [
      pathIdMustBeInteger('/api/usuario/', BAD_USUARIO_ID),
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
      unknownPathId('/api/usuario/', ok({})),
      rule(
        'looks for the user before it looks for the profile or a duplicate email',
        [['/api/usuario/999', { strCorreo: EVA.strCorreo, idPerfil: 999 }]],
        ok({}),
      ),
    ],
  },

  'DELETE /api/usuario/:id': {
    id: 2,
    answer: DELETED.body,
    writes: { usuario: [2] },
    rules: [
      pathIdMustBeInteger('/api/usuario/', BAD_USUARIO_ID),
      unknownPathId('/api/usuario/', DELETED),
      rule(
        'answers 409 for the own user',
        ['/api/usuario/1'],
        statusCodeAnswer(409, 'No puede eliminar su propio usuario'),
      ),
    ],
  },
} satisfies Contracts
