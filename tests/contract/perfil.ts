import { DELETED, statusCodeAnswer } from '../answers.js'
import { PERFILES } from './rows.js'
import {
  BAD_PERFIL_ID,
  type Contracts,
  firstOfEach,
  mustBeBoolean,
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
  under,
  unknownPathId,
  withField,
} from './rules.js'

const perfiles = (...ids: number[]) => ({
  data: ids.map((id) => PERFILES[id - 1]),
  totalPages: Math.ceil(ids.length / 5),
})

const NO_PERFIL_NAME = statusCodeAnswer(400, 'El nombre es obligatorio')

/** The rules that POST and PUT of a profile share. Their name has the same schema. */
const PERFIL_RULES: Rule[] = [
  rule(
    'answers 400 when strNombrePerfil is missing or only whitespace',
    withField('strNombrePerfil', [undefined, null, '', '  ', '\t\n\u00a0']),
    NO_PERFIL_NAME,
  ),
  mustBeText('strNombrePerfil'),
  mustHaveAllowedCharacters('strNombrePerfil', [NUL, '\udc00x']),
  mustNotExceed255Characters('strNombrePerfil'),
  mustBeBoolean('bitAdministrador', [0, 1, 'true', '', []]),
]

export const PERFIL_ENDPOINTS = {
  'GET /api/perfil': {
    answer: { success: true, ...perfiles(3, 2, 1) },
    same: {
      'ignores empty parameters': ['/api/perfil?page=&search=&isAdmin='],
      'accepts a slash at the end of the path': ['/api/perfil/'],
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
        under('/api/perfil?page=', ['2', '2&search=a', '99999999999999999999']),
        ok({ data: [], totalPages: 1 }),
      ),
      rule(
        'returns only the profiles without the flag when isAdmin is false',
        ['/api/perfil?isAdmin=false'],
        ok(perfiles(3, 2)),
      ),
      rule(
        'returns only the profiles with the flag when isAdmin is true',
        ['/api/perfil?isAdmin=true'],
        ok(perfiles(1)),
      ),
      rule(
        'returns only the profiles that match both filters',
        ['/api/perfil?search=r&isAdmin=false'],
        ok(perfiles(3)),
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
        'returns an empty list when no name contains the text, which may have 255 characters',
        under('/api/perfil?search=', [
          ...['nada', 'V%25s', '__', '%5C%25', '%27%20or%201%3D1'],
          ...['ñ'.repeat(255), '🗝'.repeat(255)],
        ]),
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
    rules: [],
  },

  'POST /api/perfil': {
    body: { strNombrePerfil: ' Compras ' },
    answer: {
      success: true,
      data: { id: 4, strNombrePerfil: ' Compras ', bitAdministrador: false },
    },
    writes: { perfil: [4] },
    same: { 'takes null for the flag as omitted': [{ bitAdministrador: null }] },
    rules: firstOfEach(PERFIL_RULES),
  },

  'PUT /api/perfil/:id': {
    id: 2,
    body: { strNombrePerfil: ' Compras ', bitAdministrador: false },
    answer: {
      success: true,
      data: { id: 2, strNombrePerfil: ' Compras ', bitAdministrador: false },
    },
    writes: { perfil: [2] },
    rules: [
      pathIdMustBeInteger('/api/perfil/', BAD_PERFIL_ID),
      ...PERFIL_RULES,
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
      required('bitAdministrador', [undefined, null]),
      unknownPathId('/api/perfil/', statusCodeAnswer(404, 'Perfil no encontrado')),
    ],
  },

  'DELETE /api/perfil/:id': {
    id: 3,
    answer: DELETED.body,
    writes: { perfil: [3], permisos_perfil: [3] },
    rules: [
      pathIdMustBeInteger('/api/perfil/', BAD_PERFIL_ID),
      unknownPathId('/api/perfil/', DELETED),
      rule(
        'answers 409 while users have the profile',
        ['/api/perfil/2'],
        statusCodeAnswer(409, 'El perfil está asignado a usuarios'),
      ),
    ],
  },
} satisfies Contracts
