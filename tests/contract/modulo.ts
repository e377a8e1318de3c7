import { DELETED, successFalseAnswer } from '../answers.js'
import { endpoint } from '../endpoints.js'
import { MODULOS } from './rows.js'
import {
  type Contracts,
  firstOfEach,
  LONG,
  mustBePage,
  mustBeText,
  mustNotExceed255CharactersInSearch,
  NUL,
  ok,
  pathIdMustBeInteger,
  type Rule,
  rule,
  tooLongMessage,
  under,
  unknownPathId,
  withField,
} from './rules.js'

const NO_MODULO_NAME = successFalseAnswer(200, 'El nombre del módulo es obligatorio.')
const BAD_MODULO_ID = successFalseAnswer(200, 'ID de módulo inválido.')

/** The rules that POST and PUT of a module share. Their field has the same schema. */
const MODULO_NAME_RULES: Rule[] = [
  rule(
    'answers success false when strNombreModulo is missing, falsy, only whitespace or has a NUL',
    withField('strNombreModulo', [undefined, null, '', '  ', '\t\n\u00a0', 0, false, NUL]),
    NO_MODULO_NAME,
  ),
  mustBeText('strNombreModulo'),
  rule(
    'answers success false when strNombreModulo has more than 255 characters in upper case',
    // The letter ß becomes two letters in upper case.
    withField('strNombreModulo', [LONG, 'ß'.repeat(128)]),
    successFalseAnswer(200, tooLongMessage('strNombreModulo')),
  ),
]

/** Names of another module, in upper or lower case. */
const TAKEN_NAMES = withField('strNombreModulo', ['USUARIO', 'almacén \\ ñ'])

export const MODULO_ENDPOINTS = {
  'GET /api/modulo': {
    answer: { success: true, data: MODULOS.slice(1).reverse(), totalPages: 2 },
    same: {
      'ignores empty parameters': ['/api/modulo?page=&search='],
      'accepts a slash at the end of the path': ['/api/modulo/'],
    },
    rules: [
      mustBePage('/api/modulo'),
      rule(
        'returns the sixth module on page 2',
        ['/api/modulo?page=2'],
        ok({ data: MODULOS.slice(0, 1), totalPages: 2 }),
      ),
      rule(
        'returns the modules whose names contain the text, in upper or lower case',
        under('/api/modulo?search=', ['almac%C3%A9n', '%C3%89N', '%5C', '%20%5C%20']),
        ok({ data: MODULOS.slice(5), totalPages: 1 }),
      ),
      mustNotExceed255CharactersInSearch('/api/modulo'),
    ],
  },

  'GET /api/modulo/list': {
    answer: { success: true, data: MODULOS },
    rules: [],
  },

  'POST /api/modulo': {
    body: { strNombreModulo: ' módulo ñandú ' },
    answer: { success: true, data: { id: 7, strNombreModulo: ' MÓDULO ÑANDÚ ' } },
    writes: { modulo: [7] },
    rules: [
      ...MODULO_NAME_RULES,
      rule(
        'answers success false when another module has the name',
        TAKEN_NAMES,
        endpoint('POST /api/modulo').unexpected,
      ),
    ],
  },

  'PUT /api/modulo/:id': {
    id: 5,
    body: { strNombreModulo: 'razón social' },
    answer: { success: true, data: { id: 5, strNombreModulo: 'RAZÓN SOCIAL' } },
    writes: { perfil: [2, 3], modulo: [5] },
    rules: [
      pathIdMustBeInteger('/api/modulo/', BAD_MODULO_ID),
      ...firstOfEach(MODULO_NAME_RULES),
      rule(
        'validates the body before it looks for the module',
        [['/api/modulo/999', { strNombreModulo: '' }]],
        NO_MODULO_NAME,
      ),
      rule(
        'answers success false when another module has the name',
        TAKEN_NAMES,
        endpoint('PUT /api/modulo/:id').unexpected,
      ),
      unknownPathId('/api/modulo/', ok({})),
      rule(
        'looks for the module before it looks for a duplicate name',
        [['/api/modulo/999', { strNombreModulo: 'USUARIO' }]],
        ok({}),
      ),
    ],
  },

  'DELETE /api/modulo/:id': {
    id: 5,
    answer: DELETED.body,
    writes: { perfil: [2, 3], modulo: [5], permisos_perfil: [1, 3] },
    rules: [
      pathIdMustBeInteger('/api/modulo/', BAD_MODULO_ID),
      unknownPathId('/api/modulo/', DELETED),
      rule(
        'answers success false for a system module',
        ['/api/modulo/4'],
        successFalseAnswer(200, 'No se puede eliminar un módulo del sistema.'),
      ),
    ],
  },
} satisfies Contracts
