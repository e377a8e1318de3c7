import { DELETED, MATRIX_REPLACED, statusCodeAnswer } from '../answers.js'
import { endpoint } from '../endpoints.js'
import { flags, MODULOS, PERFILES, PERMISOS } from './rows.js'
import {
  BAD_FLAGS,
  BAD_PATH_IDS,
  BAD_PERFIL_ID,
  type Contracts,
  MISSING,
  mustBeBoolean,
  mustBeId,
  mustBePage,
  NOT_NUMBERS,
  ok,
  rule,
  UNKNOWN_IDS,
  UNKNOWN_PATH_IDS,
  under,
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

export const PERMISOS_ENDPOINTS = {
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
} satisfies Contracts
