import { type Static, type StaticDecode, Type } from '@sinclair/typebox'
import { Bool, PageNumber, PathId, QueryBoolean, Search, Text } from '../http/fields.js'

/** A profile (contract, section 2.2). */
export const Perfil = Type.Object({
  id: Type.Integer(),
  strNombrePerfil: Type.String(),
  bitAdministrador: Type.Boolean(),
})
export type Perfil = Static<typeof Perfil>

export const PerfilBreve = Type.Pick(Perfil, ['id', 'strNombrePerfil'])
export type PerfilBreve = Static<typeof PerfilBreve>

export const PerfilFiltro = Type.Object({
  page: PageNumber,
  search: Search,
  isAdmin: QueryBoolean,
})
export type PerfilFiltro = StaticDecode<typeof PerfilFiltro>

const nombre = Text({
  example: 'Recursos humanos',
  faults: { missing: 'El nombre es obligatorio' },
})

export const PerfilNuevo = Type.Object({
  strNombrePerfil: nombre,
  bitAdministrador: Type.Optional(Bool({ default: false })),
})
export type PerfilNuevo = StaticDecode<typeof PerfilNuevo>

export const PerfilEditado = Type.Object({
  strNombrePerfil: nombre,
  bitAdministrador: Bool(),
})
export type PerfilEditado = StaticDecode<typeof PerfilEditado>

export const PerfilParams = Type.Object({ id: PathId('ID de perfil inválido') })
