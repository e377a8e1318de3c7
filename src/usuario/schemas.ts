import { type Static, type StaticDecode, Type } from '@sinclair/typebox'
import {
  Booleano,
  BooleanoDeConsulta,
  Correo,
  decoded,
  Id,
  IdDeConsulta,
  IdDeRuta,
  Page,
  Password,
  passwordFault,
  Search,
  Texto,
} from '../fields.js'
import { TextoONull } from '../schemas.js'

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

/** A password on an update, where the empty text leaves the one there is. */
const PasswordNuevo = decoded<string, string | undefined>(
  {
    wire: { type: 'string', format: 'password' },
    fault: (value) => (value === '' ? undefined : passwordFault(value)),
  },
  (value) => value || undefined,
)

// The image SDK opens whatever it does not take for a data URI as a file or an address, and it
// looks at the first 120 characters only: the part before the comma stays well below that.
const DATA_URI = /^data:image\/[\w.-]{1,30}(\+[\w.-]{1,10})?(;[\w.-]{1,20}=[\w.-]{1,20})?;base64,/

/** A whole image as a base64 data URI; the empty text is as omitted. */
const Imagen = decoded<string, string | undefined>(
  {
    wire: { type: 'string', examples: ['data:image/png;base64,iVBORw0KGgo='] },
    fault: (value) => {
      if (typeof value !== 'string') return 'text'
      if (value === '') return undefined
      if (!value.startsWith('data:image')) return 'prefix'
      const [head] = DATA_URI.exec(value) ?? ['']
      return head && isBase64(value.slice(head.length)) ? undefined : 'image'
    },
  },
  (value) => value || undefined,
)

/** In lines or not, padded or not: both are usual, and the image host takes them. */
const isBase64 = (text: string) => /^[A-Za-z0-9+/][A-Za-z0-9+/\n]*={0,2}\n?$/.test(text)

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
