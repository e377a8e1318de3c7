import { type Static, type StaticDecode, Type } from '@sinclair/typebox'
import {
  Booleano,
  BooleanoDeConsulta,
  Correo,
  Id,
  IdDeConsulta,
  IdDeRuta,
  Imagen,
  Page,
  Password,
  PasswordNuevo,
  Search,
  Texto,
  TextoONull,
} from '../schemas.js'

/** A user, with the hash of the password (contract, section 2.1). */
export const Usuario = Type.Object({
  id: Type.Integer(),
  strNombreUsuario: Type.String(),
  idPerfil: Type.Integer(),
  strPwd: Type.String({ description: 'Hash bcrypt de la contraseña' }),
  strCorreo: Type.String(),
  strNumeroCelular: TextoONull(),
  idEstadoUsuario: Type.Boolean(),
  imagenUrl: TextoONull(),
})
export type Usuario = Static<typeof Usuario>

/** A user without the hash, with the name of the profile. */
export const UsuarioVisto = Type.Composite([
  Type.Omit(Usuario, ['strPwd']),
  Type.Object({ nombrePerfil: Type.String() }),
])
export type UsuarioVisto = Static<typeof UsuarioVisto>

export const UsuarioFiltro = Type.Object({
  page: Page,
  search: Search,
  idPerfil: IdDeConsulta,
  estado: BooleanoDeConsulta,
})
export type UsuarioFiltro = StaticDecode<typeof UsuarioFiltro>

export const UsuarioNuevo = Type.Object({
  strNombreUsuario: Texto({ example: 'ana' }),
  idPerfil: Id(),
  strPwd: Password(),
  strCorreo: Correo,
  strNumeroCelular: Type.Optional(Texto({ blank: true, example: '5512345678' })),
  idEstadoUsuario: Type.Optional(Booleano({ default: true })),
  imagenBase64: Type.Optional(Imagen),
})
export type UsuarioNuevo = StaticDecode<typeof UsuarioNuevo>

export const UsuarioEditado = Type.Object({
  strNombreUsuario: Texto({ example: 'ana' }),
  idPerfil: Id(),
  strCorreo: Correo,
  strNumeroCelular: Type.Optional(Texto({ blank: true, example: '5512345678' })),
  idEstadoUsuario: Booleano(),
  strPwd: Type.Optional(PasswordNuevo),
  imagenBase64: Type.Optional(Imagen),
})
export type UsuarioEditado = StaticDecode<typeof UsuarioEditado>

export const UsuarioParams = Type.Object({ id: IdDeRuta('ID de usuario inválido') })
