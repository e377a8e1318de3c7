import { type Static, type StaticDecode, Type } from '@sinclair/typebox'
import { Named } from '../http/envelopes.js'
import { decoded, field, PageNumber, PathId, Search, textFault } from '../http/fields.js'

/** A module (contract, section 2.3). */
export const Modulo = Named('Modulo', { id: Type.Integer(), strNombreModulo: Type.String() })
export type Modulo = Static<typeof Modulo>

export const ModuloFiltro = Type.Object({ page: PageNumber, search: Search })
export type ModuloFiltro = StaticDecode<typeof ModuloFiltro>

const OBLIGATORIO = 'El nombre del módulo es obligatorio.'

/** As it is stored, which may be longer than what was sent. */
const upperCase = (value: unknown) => (typeof value === 'string' ? value.toUpperCase() : value)

/** The name of a module, which is kept in upper case. */
const NombreDeModulo = decoded(
  field<string>(
    { type: 'string', minLength: 1, maxLength: 255, examples: ['INVENTARIO'] },
    (value) => (value ? textFault(upperCase(value), 255) : 'missing'),
    {
      missing: OBLIGATORIO,
      characters: OBLIGATORIO,
      length: 'El campo strNombreModulo no puede superar los 255 caracteres',
    },
  ),
  (value) => value.toUpperCase(),
)

export const ModuloEnviado = Named('ModuloEnviado', { strNombreModulo: NombreDeModulo })

export const ModuloParams = Type.Object({ id: PathId('ID de módulo inválido.', 'Id del módulo') })
