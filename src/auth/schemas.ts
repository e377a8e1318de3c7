import { type Static, Type } from '@sinclair/typebox'
import { MAX_PASSWORD_BYTES } from '../config.js'
import {
  brokenConstraint,
  type Constraint,
  hasAtMostBytes,
  isStorable,
  isText,
  requiredAndNotEmpty,
} from '../http/constraints.js'
import { Done, Named, NullableText } from '../http/envelopes.js'
import { field, MAX_ID, Text } from '../http/fields.js'

export const CAPTCHA_RECHAZADO = 'Fallo en la validación del captcha.'

// Captcha first: name and password are looked at after it (contract, section 4.1), by the handler.
const credencial = (wire: object) => field<unknown>({ type: 'string', ...wire }, [])

export const Login = Named('Login', 'Las credenciales de un usuario', {
  strNombreUsuario: credencial({ description: 'Nombre de usuario', examples: ['admin'] }),
  strPwd: credencial({
    format: 'password',
    description: 'Contraseña',
    examples: ['llavero-admin'],
  }),
  captchaToken: Text({
    max: 8192,
    description: 'El token que da el widget del captcha',
    examples: ['token del widget'],
    messages: {
      missing: CAPTCHA_RECHAZADO,
      text: CAPTCHA_RECHAZADO,
      characters: CAPTCHA_RECHAZADO,
      length: CAPTCHA_RECHAZADO,
    },
  }),
})

const fitsBcrypt: Constraint = {
  ...hasAtMostBytes(MAX_PASSWORD_BYTES),
  message: () => `La contraseña no puede superar los ${MAX_PASSWORD_BYTES} bytes`,
}

// bcrypt repeats the key with a NUL after it: with a NUL inside, "a" would pass for "a\0a".
export const PASSWORD_CONSTRAINTS = [requiredAndNotEmpty, isText, isStorable, fitsBcrypt]

/** Whether a user can have this password. */
export const isPassword = (value: unknown) =>
  brokenConstraint(PASSWORD_CONSTRAINTS, value) === undefined

/** A password to be stored as its hash. */
export const Password = field<string>(
  {
    type: 'string',
    format: 'password',
    minLength: 1,
    description: 'Contraseña, de 72 bytes como mucho; se guarda su hash',
    examples: ['una clave larga'],
  },
  PASSWORD_CONSTRAINTS,
)

export const LoginCorrecto = Named('LoginCorrecto', 'Una sesión iniciada', {
  success: Done(true),
  token: Type.String({
    description: 'JWT, válido 8 horas',
    examples: ['eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpZCI6N30.firma'],
  }),
  user: Type.Object(
    {
      id: Type.Integer({ description: 'Id del usuario', examples: [7] }),
      nombre: Type.String({ description: 'Nombre de usuario', examples: ['ana'] }),
      idPerfil: Type.Integer({ description: 'Id del perfil del usuario', examples: [3] }),
      correo: Type.String({ description: 'Correo electrónico', examples: ['ana@ejemplo.com'] }),
      celular: NullableText({ description: 'Número de celular', examples: ['5512345678'] }),
      imagenUrl: NullableText({
        description: 'Dirección de la imagen',
        examples: ['https://imagenes.ejemplo.com/ana.png'],
      }),
    },
    { description: 'El usuario que ha iniciado la sesión' },
  ),
})

/** A user as the login reads it. */
export interface Credenciales {
  id: number
  strNombreUsuario: string
  idPerfil: number
  strPwd: string
  strCorreo: string
  strNumeroCelular: string | null
  idEstadoUsuario: boolean
  imagenUrl: string | null
  versionSesion: number
}

/** The payload of the token (contract, section 5). */
export const Token = Type.Object({
  id: Type.Integer({ minimum: 1, maximum: MAX_ID }),
  idPerfil: Type.Integer(),
  nombre: Type.String(),
  /** The version of the user's sessions that it was issued under; 0 when absent. */
  ver: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_ID })),
})
export type Token = Static<typeof Token>

/** The modules that the service itself decides by; sql/functions/is_modulo_de_sistema.sql. */
export type ModuloDeSistema = 'USUARIO' | 'PERFIL' | 'MODULO' | 'PERMISOS'

export type Accion = 'bitAgregar' | 'bitEditar' | 'bitConsulta' | 'bitEliminar' | 'bitDetalle'

/** What a request asks the database about its caller, before anything else. */
export interface Lookup {
  /** The user that the token names, and the version of the sessions that it was issued under. */
  id: number
  ver: number
  /** The permission that is asked about; both are null where none is needed. */
  modulo: ModuloDeSistema | null
  accion: Accion | null
  /** The profile whose permission map's version is asked for. */
  versionOf: number | null
}

/** Who is calling, as the database has it now. */
export interface Sesion {
  id: number
  nombre: string
  idPerfil: number
  perfil: string
  administrador: boolean
  /** The version of the user's sessions. */
  ver: number
  /** Whether the profile has the permission that was asked about. */
  permitido: boolean
  /** The version of the permission map that was asked about; null where there is none. */
  versionPermisos: string | null
}
