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

// The captcha is checked first (contract, section 4.1). So name and password have no constraints
// here, and the handler checks them after it.
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

/**
 * A password must not contain NUL, which isStorable refuses: bcrypt repeats the key with a NUL
 * after it, so "a" and "a\0a" would have the same hash.
 */
export const PASSWORD_CONSTRAINTS = [requiredAndNotEmpty, isText, isStorable, fitsBcrypt]

/** Whether a stored user can have this password. No other password is compared. */
export const isPassword = (value: unknown) =>
  brokenConstraint(PASSWORD_CONSTRAINTS, value) === undefined

/** A password in a request. Only its hash is stored. */
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

/** The columns of a user that the login reads. */
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
  /** The user's `versionSesion` when the token was issued. A missing one means 0. */
  ver: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_ID })),
})
export type Token = Static<typeof Token>

/**
 * The modules by which the service decides who may do what. sql/functions/is_modulo_de_sistema.sql
 * has the same list.
 */
export type ModuloDeSistema = 'USUARIO' | 'PERFIL' | 'MODULO' | 'PERMISOS'

export type Accion = 'bitAgregar' | 'bitEditar' | 'bitConsulta' | 'bitEliminar' | 'bitDetalle'

/** The look-up of the caller that a request sends to the database before its handler runs. */
export interface Lookup {
  /** The id of the user in the token. */
  id: number
  /** The version of the user's sessions in the token. */
  ver: number
  /** The permission that the request needs. `modulo` and `accion` are null if it needs none. */
  modulo: ModuloDeSistema | null
  accion: Accion | null
  /** The profile for which the version of the permission map is looked up; null for none. */
  versionOf: number | null
}

/** The caller as stored in the database at the time of the request. */
export interface Sesion {
  id: number
  nombre: string
  idPerfil: number
  perfil: string
  administrador: boolean
  /** The version of the user's sessions. */
  ver: number
  /** Whether the profile has the permission in the look-up. */
  permitido: boolean
  /**
   * The version of the permission map in the look-up; null if none is looked up or it is unknown.
   */
  versionPermisos: string | null
}
