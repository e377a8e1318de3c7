import { type Static, Type } from '@sinclair/typebox'
import { Named } from '../http/answers/envelopes.js'
import {
  type Constraint,
  mustBeStorable,
  mustBeText,
  mustHaveAtMost,
  requiredAndNotBlank,
} from '../http/input/constraints.js'
import { field, Id, PageNumber, Search } from '../http/input/fields.js'

/** A module (contract, section 2.3). */
export const Modulo = Named('Modulo', 'Un módulo', {
  id: Type.Integer({ description: 'Id del módulo' }),
  strNombreModulo: Type.String({ description: 'Nombre del módulo, en mayúsculas' }),
})
export type Modulo = Static<typeof Modulo>

export const ModuloFiltro = Type.Object({ page: PageNumber, search: Search })
export type ModuloFiltro = Static<typeof ModuloFiltro>

const MISSING_NOMBRE = 'El nombre del módulo es obligatorio.'

/** A falsy value, such as 0 or false, counts as missing, too (contract, section 7). */
const requiredAndTruthy: Constraint = {
  ...requiredAndNotBlank,
  isSatisfied: (value) => Boolean(value) && requiredAndNotBlank.isSatisfied(value),
}

const mustBeShort = mustHaveAtMost(255)

/**
 * Limits the length of the name in upper case, because the name is stored in upper case. This form
 * can be longer than the name in the request: ß becomes SS.
 */
const mustBeShortInUpperCase: Constraint = {
  ...mustBeShort,
  isSatisfied: (name: string) => mustBeShort.isSatisfied(name.toUpperCase()),
}

/** The name of a module. Handlers get it in upper case, as it is stored. */
const NombreDeModulo = field(
  [requiredAndTruthy, mustBeText, mustBeStorable, mustBeShortInUpperCase],
  {
    messages: {
      missing: MISSING_NOMBRE,
      characters: MISSING_NOMBRE,
      // This text is the constraint's own. But only a text that is given here makes the Failure
      // `invalid`, which these routes answer with the status 200.
      length: 'El campo strNombreModulo no puede superar los 255 caracteres',
    },
    decode: (value: string) => value.toUpperCase(),
    description: 'Nombre del módulo, único; se guarda en mayúsculas',
    examples: ['INVENTARIO'],
  },
)

export const ModuloEnviado = Named('ModuloEnviado', 'El nombre de un módulo', {
  strNombreModulo: NombreDeModulo,
})
export type ModuloEnviado = Static<typeof ModuloEnviado>

export const ModuloParams = Type.Object({
  id: Id('Id del módulo', 'ID de módulo inválido.'),
})
