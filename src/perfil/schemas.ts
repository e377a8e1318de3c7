import { type Static, type StaticDecode, Type } from '@sinclair/typebox'
import { Booleano, BooleanoDeConsulta, IdDeRuta, Page, Search, Texto } from '../fields.js'

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
  page: Page,
  search: Search,
  isAdmin: BooleanoDeConsulta,
})
export type PerfilFiltro = StaticDecode<typeof PerfilFiltro>

const nombre = Texto({
  example: 'Recursos humanos',
  faults: { missing: 'El nombre es obligatorio' },
})

export const PerfilNuevo = Type.Object({
  strNombrePerfil: nombre,
  bitAdministrador: Type.Optional(Booleano({ default: false })),
})
export type PerfilNuevo = StaticDecode<typeof PerfilNuevo>

export const PerfilEditado = Type.Object({
  strNombrePerfil: nombre,
  bitAdministrador: Booleano(),
})
export type PerfilEditado = StaticDecode<typeof PerfilEditado>

export const PerfilParams = Type.Object({ id: IdDeRuta('ID de perfil inválido') })
