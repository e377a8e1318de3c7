import { type Static, type StaticDecode, Type } from '@sinclair/typebox'
import { PASSWORD_CONSTRAINTS, Password } from '../auth/schemas.js'
import { type Constraint, isEmail, isText, textConstraints } from '../http/constraints.js'
import { Named, NullableText } from '../http/envelopes.js'
import {
  Bool,
  decoded,
  field,
  Id,
  Omissible,
  PageNumber,
  PathId,
  QueryBoolean,
  Search,
  Text,
} from '../http/fields.js'

/** An email address. */
export const Email = field<string>(
  { type: 'string', format: 'email', maxLength: 255, examples: ['ana@ejemplo.com'] },
  [...textConstraints(255), isEmail],
)

/** A user, with the hash of the password (contract, section 2.1). */
export const Usuario = Named('Usuario', {
  id: Type.Integer(),
  strNombreUsuario: Type.String(),
  idPerfil: Type.Integer(),
  strPwd: Type.String({ description: 'Hash bcrypt de la contraseña' }),
  strCorreo: Type.String(),
  strNumeroCelular: NullableText(),
  idEstadoUsuario: Type.Boolean(),
  imagenUrl: NullableText(),
})
export type Usuario = Static<typeof Usuario>

/** A user without the hash, with the name of the profile. */
export const UsuarioVisto = Named('UsuarioVisto', {
  ...Type.Omit(Usuario, ['strPwd']).properties,
  nombrePerfil: Type.String(),
})
export type UsuarioVisto = Static<typeof UsuarioVisto>

export const UsuarioFiltro = Type.Object({
  page: PageNumber,
  search: Search,
  idPerfil: Type.Optional(Id({}, 'Id del perfil')),
  estado: QueryBoolean('Solo los activos, o solo los inactivos'),
})
export type UsuarioFiltro = StaticDecode<typeof UsuarioFiltro>

/** The same constraint, which the empty text keeps as well. */
const orEmpty = (constraint: Constraint): Constraint => ({
  ...constraint,
  isKept: (value) => value === '' || constraint.isKept(value),
})

/** A password on an update, where the empty text leaves the one there is. */
const PasswordNuevo = decoded(
  field<string>(
    { type: 'string', format: 'password' },
    PASSWORD_CONSTRAINTS.map((constraint) => orEmpty(constraint)),
  ),
  (value) => value || undefined,
)

// The image SDK opens whatever it does not take for a data URI as a file or an address, and it
// looks at the first 120 characters only: the part before the comma stays well below that.
const DATA_URI = /^data:image\/[\w.-]{1,30}(\+[\w.-]{1,10})?(;[\w.-]{1,20}=[\w.-]{1,20})?;base64,/

const isDataImage: Constraint = {
  name: 'prefix',
  isKept: (value) => String(value).startsWith('data:image'),
  message: (name) => `El campo ${name} debe empezar por data:image`,
}

const isWholeImage: Constraint = {
  name: 'image',
  isKept: (value) => {
    const [head] = DATA_URI.exec(String(value)) ?? ['']
    return head !== '' && isBase64(String(value).slice(head.length))
  },
  message: (name) => `El campo ${name} debe ser una imagen completa en base64`,
}

/** A whole image as a base64 data URI; the empty text counts as omitted. */
const Imagen = decoded(
  field<string>({ type: 'string', examples: ['data:image/png;base64,iVBORw0KGgo='] }, [
    isText,
    orEmpty(isDataImage),
    orEmpty(isWholeImage),
  ]),
  (value) => value || undefined,
)

/** In lines or not, padded or not: both are usual, and the image host takes them. */
const isBase64 = (text: string) => /^[A-Za-z0-9+/][A-Za-z0-9+/\n]*={0,2}\n?$/.test(text)

export const UsuarioNuevo = Named('UsuarioNuevo', {
  strNombreUsuario: Text({ visible: true, examples: ['ana'] }),
  idPerfil: Id(),
  strPwd: Password,
  strCorreo: Email,
  strNumeroCelular: Omissible(Text({ blank: true, examples: ['5512345678'] })),
  idEstadoUsuario: Omissible(Bool('Si falta: true')),
  imagenBase64: Omissible(Imagen),
})
export type UsuarioNuevo = StaticDecode<typeof UsuarioNuevo>

export const UsuarioEditado = Named('UsuarioEditado', {
  strNombreUsuario: Text({ visible: true, examples: ['ana'] }),
  idPerfil: Id(),
  strCorreo: Email,
  strNumeroCelular: Omissible(Text({ blank: true, examples: ['5512345678'] })),
  idEstadoUsuario: Bool(),
  strPwd: Omissible(PasswordNuevo),
  imagenBase64: Omissible(Imagen),
})
export type UsuarioEditado = StaticDecode<typeof UsuarioEditado>

export const UsuarioParams = Type.Object({ id: PathId('ID de usuario inválido', 'Id del usuario') })
