import { statusCodeAnswer } from '../answers.js'
import { PERFILES } from './rows.js'
import {
  BAD_PATH_IDS,
  BAD_PERFIL_ID,
  type Contracts,
  LONGEST_SEARCHES,
  mustBeBoolean,
  mustBePage,
  mustBeText,
  mustHaveAllowedCharacters,
  mustNotExceed255Characters,
  mustNotExceed255CharactersInSearch,
  NUL,
  ok,
  required,
  rule,
  UNKNOWN_PATH_IDS,
  under,
  withField,
} from './rules.js'

const perfiles = (...ids: number[]) => ({
  data: ids.map((id) => PERFILES[id - 1]),
  totalPages: Math.ceil(ids.length / 5),
})

const NO_PERFIL_NAME = statusCodeAnswer(400, 'El nombre es obligatorio')

export const PERFIL_ENDPOINTS = {
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
} satisfies Contracts
