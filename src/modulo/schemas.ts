import { type Static, type StaticDecode, Type } from '@sinclair/typebox'
import { decoded, IdDeRuta, Page, Search, textFault } from '../fields.js'

/** A module (contract, section 2.3). */
export const Modulo = Type.Object({ id: Type.Integer(), strNombreModulo: Type.String() })
export type Modulo = Static<typeof Modulo>

export const ModuloFiltro = Type.Object({ page: Page, search: Search })
export type ModuloFiltro = StaticDecode<typeof ModuloFiltro>

const OBLIGATORIO = 'El nombre del módulo es obligatorio.'

/** As it is stored, which may be longer than what was sent. */
const upperCase = (value: unknown) => (typeof value === 'string' ? value.toUpperCase() : value)

/** The name of a module, which is kept in upper case. */
const NombreDeModulo = decoded<string, string>(
  {
    wire: { type: 'string', minLength: 1, maxLength: 255, examples: ['INVENTARIO'] },
    fault: (value) => (value ? textFault(upperCase(value), 255) : 'missing'),
    faults: {
      missing: OBLIGATORIO,
      characters: OBLIGATORIO,
      length: 'El campo strNombreModulo no puede superar los 255 caracteres',
    },
  },
  (value) => value.toUpperCase(),
)

export const ModuloEnviado = Type.Object({ strNombreModulo: NombreDeModulo })

export const ModuloParams = Type.Object({ id: IdDeRuta('ID de módulo inválido.') })
