import { type Static, Type } from '@sinclair/typebox'
import { PASSWORD_CONSTRAINTS, Password } from '../access/schemas.js'
import { Named, Nullable } from '../http/answers/envelopes.js'
import {
  type Constraint,
  mustBeEmail,
  mustBeText,
  mustBeVisible,
  required,
  requiredAndNotEmpty,
} from '../http/input/constraints.js'
import {
  Bool,
  field,
  Id,
  Omissible,
  PageNumber,
  QueryBoolean,
  QueryId,
  Search,
  Text,
} from '../http/input/fields.js'

// The OpenAPI document's descriptions of the fields that both requests and answers have.
const NOMBRE = {
  description: 'Nombre de usuario, único sin distinguir mayúsculas, sin espacios en los extremos',
  examples: ['ana'],
}
const ID_PERFIL = 'Id del perfil del usuario'
const CORREO = {
  description: 'Correo electrónico, único sin distinguir mayúsculas',
  examples: ['ana@ejemplo.com'],
}
const CELULAR = {
  description: 'Número de celular',
  examples: ['5512345678'],
}
const ACTIVO = 'Si el usuario está activo; uno inactivo no puede iniciar sesión'

// Fields of both requests.
const Nombre = Text({ further: [mustBeVisible], ...NOMBRE })
const Correo = Text({ further: [mustBeEmail], ...CORREO })
const Celular = Omissible(
  Text({ presence: required, ...CELULAR, description: 'Número de celular. Si falta: null' }),
)

/** A user with the hash of the password (contract, section 2.1). */
export const Usuario = Named('Usuario', 'Un usuario con el hash de su contraseña', {
  id: Type.Integer({ description: 'Id del usuario' }),
  strNombreUsuario: Type.String(NOMBRE),
  idPerfil: Type.Integer({ description: ID_PERFIL }),
  strPwd: Type.String({ description: 'Hash bcrypt de la contraseña' }),
  strCorreo: Type.String(CORREO),
  strNumeroCelular: Nullable<string>('string', CELULAR),
  idEstadoUsuario: Type.Boolean({ description: ACTIVO }),
  imagenUrl: Nullable<string>('string', {
    description: 'Dirección de la imagen; null si no tiene',
  }),
})
export type Usuario = Static<typeof Usuario>

/** A user with the name of the profile and without the hash of the password. */
export const UsuarioVisto = Named('UsuarioVisto', 'Un usuario, como se lista y se consulta', {
  ...Type.Omit(Usuario, ['strPwd']).properties,
  nombrePerfil: Type.String({ description: 'Nombre del perfil' }),
})
export type UsuarioVisto = Static<typeof UsuarioVisto>

export const UsuarioFiltro = Type.Object({
  page: PageNumber,
  search: Search,
  idPerfil: QueryId('Id del perfil'),
  estado: QueryBoolean('Solo los activos, o solo los inactivos'),
})
export type UsuarioFiltro = Static<typeof UsuarioFiltro>

/** The password in an update. The empty text means the same as a missing field. */
const PasswordEditada = field<string>(PASSWORD_CONSTRAINTS, {
  format: 'password',
  description: 'Contraseña nueva. Si falta o está vacía, sigue la que hay',
})

/**
 * The part of a data URI before the data. The image SDK opens a text as the path of a file, unless
 * the first 120 characters look like a data URI. So this part must be shorter than that.
 */
const HEAD = String.raw`data:image/[\w.-]{1,30}(\+[\w.-]{1,10})?(;[\w.-]{1,20}=[\w.-]{1,20})?;base64,`
/**
 * The data in base64. It may have line feeds, and the padding may be missing, because the image
 * host accepts both.
 */
const BASE64 = String.raw`[A-Za-z0-9+/][A-Za-z0-9+/\n]*={0,2}\n?`
const DATA_URI = new RegExp(`^${HEAD}${BASE64}$`)

const mustBeDataImage: Constraint = {
  message: 'El campo %s debe empezar por data:image',
  schema: { pattern: '^(data:image|$)' },
  isSatisfied: (text: string) => text.startsWith('data:image'),
}

const mustBeWholeImage: Constraint = {
  message: 'El campo %s debe ser una imagen completa en base64',
  isSatisfied: (text: string) => DATA_URI.test(text),
}

/** An image as a complete base64 data URI. The empty text means the same as a missing field. */
const Imagen = field<string>([requiredAndNotEmpty, mustBeText, mustBeDataImage, mustBeWholeImage], {
  description: 'Imagen como data URI en base64. Si falta o está vacía, no se guarda ninguna nueva',
  examples: ['data:image/png;base64,iVBORw0KGgo='],
})

export const UsuarioNuevo = Named('UsuarioNuevo', 'El usuario que se crea', {
  strNombreUsuario: Nombre,
  idPerfil: Id(ID_PERFIL),
  strPwd: Password,
  strCorreo: Correo,
  strNumeroCelular: Celular,
  idEstadoUsuario: Omissible(Bool(`${ACTIVO}. Si falta: true`)),
  imagenBase64: Omissible(Imagen),
})
export type UsuarioNuevo = Static<typeof UsuarioNuevo>

export const UsuarioEditado = Named(
  'UsuarioEditado',
  'Los datos que sustituyen a los del usuario',
  {
    strNombreUsuario: Nombre,
    idPerfil: Id(ID_PERFIL),
    strCorreo: Correo,
    strNumeroCelular: Celular,
    idEstadoUsuario: Bool(ACTIVO),
    strPwd: Omissible(PasswordEditada),
    imagenBase64: Omissible(Imagen),
  },
)
export type UsuarioEditado = Static<typeof UsuarioEditado>

export const UsuarioParams = Type.Object({
  id: Id('Id del usuario', 'ID de usuario inválido'),
})
