import { type Static, type StaticDecode, Type } from '@sinclair/typebox'
import { Named } from '../http/envelopes.js'
import { Bool, Omissible, PageNumber, PathId, QueryBoolean, Search, Text } from '../http/fields.js'

/** A profile (contract, section 2.2). */
export const Perfil = Named('Perfil', {
  id: Type.Integer(),
  strNombrePerfil: Type.String(),
  bitAdministrador: Type.Boolean(),
})
export type Perfil = Static<typeof Perfil>

export const PerfilBreve = Type.Pick(Perfil, ['id', 'strNombrePerfil'], { title: 'PerfilBreve' })
export type PerfilBreve = Static<typeof PerfilBreve>

export const PerfilFiltro = Type.Object({
  page: PageNumber,
  search: Search,
  isAdmin: QueryBoolean('Solo los administradores, o solo los demás'),
})
export type PerfilFiltro = StaticDecode<typeof PerfilFiltro>

const nombre = Text({
  examples: ['Recursos humanos'],
  messages: { missing: 'El nombre es obligatorio' },
})

export const PerfilNuevo = Named('PerfilNuevo', {
  strNombrePerfil: nombre,
  bitAdministrador: Omissible(Bool('Si falta: false')),
})
export type PerfilNuevo = StaticDecode<typeof PerfilNuevo>

export const PerfilEditado = Named('PerfilEditado', {
  strNombrePerfil: nombre,
  bitAdministrador: Bool(),
})
export type PerfilEditado = StaticDecode<typeof PerfilEditado>

export const PerfilParams = Type.Object({ id: PathId('ID de perfil inválido', 'Id del perfil') })
