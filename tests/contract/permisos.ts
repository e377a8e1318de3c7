import { DELETED, MATRIX_REPLACED, statusCodeAnswer } from '../answers.js'
import { endpoint, flags } from '../endpoints.js'
import { MODULOS, PERFILES, PERMISOS } from './rows.js'
import {
  BAD_FLAGS,
  BAD_PERFIL_ID,
  type Contracts,
  firstOfEach,
  MISSING,
  mustBeBoolean,
  mustBeId,
  mustBePage,
  NOT_NUMBERS,
  ok,
  pathIdMustBeInteger,
  type Rule,
  rule,
  UNKNOWN_IDS,
  under,
  unknownPathId,
  withField,
} from './rules.js'

const FALSE_FLAGS = { bitEditar: null, bitConsulta: 0, bitEliminar: '', bitDetalle: false }

const joined = (permiso: (typeof PERMISOS)[number]) => ({
  ...permiso,
  nombrePerfil: PERFILES[permiso.idPerfil - 1]?.strNombrePerfil,
  nombreModulo: MODULOS[permiso.idModulo - 1]?.strNombreModulo,
})

const NO_IDS = statusCodeAnswer(400, 'Perfil y Módulo son obligatorios')
const UNKNOWN_REFERENCE = statusCodeAnswer(400, 'El perfil o el módulo no existe')
const DUPLICATE_PERMISO = statusCodeAnswer(409, 'El perfil ya tiene permisos sobre ese módulo')
const BAD_PERMISO_ID = statusCodeAnswer(400, 'ID de permiso inválido')
const BAD_MATRIX_ID = statusCodeAnswer(400, 'ID de perfil requerido')
const MATRIX_FAILED = endpoint('POST /api/permisos/guardar-matriz').unexpected

/** The rules that POST and PUT of a permission record share. Their bodies have the same schema. */
const PERMISO_RULES: Rule[] = [
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
]

/** A change that makes `permisos` a list of a valid entry and one more entry. */
const withEntry = (entry: unknown) => ({ permisos: [{ idModulo: 1 }, entry] })
const withModulo = (idModulo: unknown) => withEntry({ idModulo })

export const PERMISOS_ENDPOINTS = {
  'GET /api/permisos': {
    answer: { success: true, data: PERMISOS.map(joined), totalPages: 1 },
    same: {
      'returns page 1 by default': ['/api/permisos?page=', '/api/permisos?page=1'],
      'accepts a slash at the end of the path': ['/api/permisos/'],
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
    writes: { perfil: [3], permisos_perfil: [4] },
    same: {
      'accepts ids as text': [{ idPerfil: '3', idModulo: '6' }],
      'stores a falsy flag as false': [FALSE_FLAGS],
    },
    rules: [
      ...PERMISO_RULES,
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
    writes: { perfil: [2, 3], permisos_perfil: [1] },
    rules: [
      pathIdMustBeInteger('/api/permisos/', BAD_PERMISO_ID),
      rule(
        'validates the body before it looks for the record',
        [['/api/permisos/999', { idModulo: undefined }]],
        NO_IDS,
      ),
      ...firstOfEach(PERMISO_RULES),
      unknownPathId('/api/permisos/', statusCodeAnswer(404, 'Permiso no encontrado')),
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
    writes: { perfil: [2], permisos_perfil: [1] },
    rules: [
      pathIdMustBeInteger('/api/permisos/', BAD_PERMISO_ID),
      unknownPathId('/api/permisos/', DELETED),
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
      pathIdMustBeInteger('/api/permisos/mis-permisos/', BAD_PERFIL_ID),
      unknownPathId('/api/permisos/mis-permisos/', ok({ permisos: {} })),
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
      pathIdMustBeInteger('/api/permisos/por-perfil/', BAD_PERFIL_ID),
      unknownPathId('/api/permisos/por-perfil/', ok({ data: [] })),
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
    writes: { perfil: [2], permisos_perfil: [1, 2, 4] },
    same: { 'accepts idPerfil as text': [{ idPerfil: '2' }] },
    rules: [
      rule(
        'accepts an empty list for an unknown profile',
        [
          { idPerfil: 999, permisos: [] },
          { idPerfil: 1e300, permisos: undefined },
        ],
        MATRIX_REPLACED,
      ),
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
} satisfies Contracts
