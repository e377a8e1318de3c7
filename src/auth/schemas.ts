import { type SchemaOptions, type Static, Type } from '@sinclair/typebox'
import { Password } from '../access/schemas.js'
import { Named, Nullable, SuccessField } from '../http/answers/envelopes.js'
import { mustBeText, requiredAndNotEmpty } from '../http/input/constraints.js'
import { field, Text } from '../http/input/fields.js'

export const REFUSED_CAPTCHA = 'Fallo en la validación del captcha.'

// The captcha is checked first (contract, section 4.1). So the name and the password have no
// constraints here, and the handler gets an empty text for one that is missing or is not text.
const Credencial = (keywords: SchemaOptions) =>
  field([], {
    decode: (value) => (typeof value === 'string' ? value : ''),
    type: 'string',
    minLength: 1,
    ...keywords,
  })

export const Login = Named('Login', 'Las credenciales de un usuario', {
  strNombreUsuario: Credencial({
    description: 'Nombre de usuario',
    examples: ['admin'],
  }),
  strPwd: Credencial({
    format: 'password',
    description: 'Contraseña',
    examples: ['llavero-admin'],
  }),
  captchaToken: Text({
    max: 8192,
    description: 'El token que da el widget del captcha',
    examples: ['token del widget'],
    messages: REFUSED_CAPTCHA,
  }),
})

export const CambioDePassword = Named('CambioDePassword', 'La contraseña actual y la nueva', {
  strPwd: field<string>([requiredAndNotEmpty, mustBeText], {
    format: 'password',
    minLength: 1,
    description: 'La contraseña actual',
  }),
  strPwdNueva: Password,
})

const TokenEmitido = Type.String({ description: 'JWT, válido 8 horas' })

export const PasswordCambiada = Named('PasswordCambiada', 'La contraseña está cambiada', {
  success: SuccessField,
  token: TokenEmitido,
})

const UsuarioDeSesion = Type.Object(
  {
    id: Type.Integer({ description: 'Id del usuario' }),
    nombre: Type.String({ description: 'Nombre de usuario' }),
    idPerfil: Type.Integer({ description: 'Id del perfil del usuario' }),
    correo: Type.String({ description: 'Correo electrónico' }),
    celular: Nullable<string>('string', { description: 'Número de celular' }),
    imagenUrl: Nullable<string>('string', { description: 'Dirección de la imagen' }),
  },
  { description: 'El usuario que ha iniciado la sesión' },
)
export type UsuarioDeSesion = Static<typeof UsuarioDeSesion>

export const LoginCorrecto = Named('LoginCorrecto', 'Una sesión iniciada', {
  success: SuccessField,
  token: TokenEmitido,
  user: UsuarioDeSesion,
})

/** What the service checks of a user who logs in. `strPwd` is the hash. */
export interface Credenciales {
  id: number
  strNombreUsuario: string
  strPwd: string
  idEstadoUsuario: boolean
}
