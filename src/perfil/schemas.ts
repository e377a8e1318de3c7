import { type Static, Type } from '@sinclair/typebox'
import { Named } from '../http/answers/envelopes.js'
import {
  Bool,
  Id,
  Omissible,
  PageNumber,
  QueryBoolean,
  Search,
  Text,
} from '../http/input/fields.js'

/** A profile (contract, section 2.2). */
export const Perfil = Named('Perfil', 'Un perfil', {
  id: Type.Integer({ description: 'Id del perfil' }),
  strNombrePerfil: Type.String({ description: 'Nombre del perfil' }),
  bitAdministrador: Type.Boolean({
    description: 'Si el perfil es de administrador y puede hacer todo',
  }),
})
export type Perfil = Static<typeof Perfil>

export const PerfilBreve = Type.Pick(Perfil, ['id', 'strNombrePerfil'], {
  title: 'PerfilBreve',
  description: 'Un perfil, solo con su nombre',
})
export type PerfilBreve = Static<typeof PerfilBreve>

export const PerfilFiltro = Type.Object({
  page: PageNumber,
  search: Search,
  isAdmin: QueryBoolean('Solo los administradores, o solo los demás'),
})
export type PerfilFiltro = Static<typeof PerfilFiltro>

const Nombre = Text({
  description: 'Nombre del perfil',
  examples: ['Recursos humanos'],
  messages: { missing: 'El nombre es obligatorio' },
})

export const PerfilNuevo = Named('PerfilNuevo', 'El perfil que se crea', {
  strNombrePerfil: Nombre,
  bitAdministrador: Omissible(
    Bool('Si el perfil es de administrador y recibe todos los permisos. Si falta: false'),
  ),
})
export type PerfilNuevo = Static<typeof PerfilNuevo>

export const PerfilEditado = Named('PerfilEditado', 'Los datos que sustituyen a los del perfil', {
  strNombrePerfil: Nombre,
  bitAdministrador: Bool(
    'Si el perfil es de administrador. Un valor nuevo sustituye sus permisos: ' +
      'true los da todos, false los quita todos',
  ),
})
export type PerfilEditado = Static<typeof PerfilEditado>

export const PerfilParams = Type.Object({
  id: Id('Id del perfil', 'ID de perfil inválido'),
})
