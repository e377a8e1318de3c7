import { type Static, type StaticDecode, Type } from '@sinclair/typebox'
import { IdDeRuta, NombreDeModulo, Page, Search } from '../schemas.js'

/** A module (contract, section 2.3). */
export const Modulo = Type.Object({ id: Type.Integer(), strNombreModulo: Type.String() })
export type Modulo = Static<typeof Modulo>

export const ModuloFiltro = Type.Object({ page: Page, search: Search })
export type ModuloFiltro = StaticDecode<typeof ModuloFiltro>

export const ModuloEnviado = Type.Object({ strNombreModulo: NombreDeModulo })

export const ModuloParams = Type.Object({ id: IdDeRuta('ID de módulo inválido.') })
