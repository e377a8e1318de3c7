import { successFalseAnswer } from '../answers.js'
import { endpoint } from '../endpoints.js'
import { MODULOS } from './rows.js'
import {
  BAD_PATH_IDS,
  type Contracts,
  firstOfEach,
  LONG,
  LONGEST_SEARCHES,
  mustBePage,
  mustBeText,
  mustNotExceed255CharactersInSearch,
  NUL,
  ok,
  type Rule,
  rule,
  tooLongMessage,
  UNKNOWN_PATH_IDS,
  under,
  withField,
} from './rules.js'

const modulos = (...ids: number[]) => ({
  data: ids.map((id) => MODULOS[id - 1]),
  totalPages: Math.ceil(ids.length / 5),
})

const NO_MODULO_NAME = successFalseAnswer(200, 'El nombre del módulo es obligatorio.')
const BAD_MODULO_ID = successFalseAnswer(200, 'ID de módulo inválido.')
const MODULO_NOT_CREATED = endpoint('POST /api/modulo').unexpected
const MODULO_NOT_UPDATED = endpoint('PUT /api/modulo/:id').unexpected

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

export const MODULO_ENDPOINTS = {
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
} satisfies Contracts
