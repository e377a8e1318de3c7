import rateLimit from '@fastify/rate-limit'
import { textConstraints, violatedConstraint } from '../http/constraints.js'
import { Confirmation } from '../http/envelopes.js'
import { Failure, statusFailure } from '../http/failures.js'
import type { RoutePlugin } from '../http/validation.js'
import type { Client } from './password.js'
import { COOKIE } from './plugin.js'
import { endSesiones, findCredenciales } from './queries.js'
import { AuditedFailure } from './refusal.js'
import {
  CAPTCHA_RECHAZADO,
  type Credenciales,
  isPassword,
  Login,
  LoginCorrecto,
  type Token,
} from './schemas.js'

const SIN_CREDENCIALES = 'Usuario y contraseña son obligatorios'
/**
 * The contract (section 7) demands exactly this text, with the English words `the service` in it.
 */
const SIN_USUARIO = 'El usuario no existe o su estado es the service.'
const INCORRECTOS = 'Usuario o contraseña incorrectos.'
const CERRADA = 'Sesión cerrada correctamente' as const

/** The largest body of a login or logout, in bytes. */
const BODY_LIMIT = 16 * 1024
/** The longest user name, in characters. */
const MAX_NAME = 255
/** The number of client addresses for which login attempts are counted. */
const ADDRESSES = 100_000

interface Options {
  /** How many logins a client address may attempt in a minute. 0 means no limit. */
  loginRateLimit: number
}

const authRoutes: RoutePlugin<Options> = async (app, { loginRateLimit }) => {
  const { sql, passwords, verifyCaptcha } = app
  await app.register(rateLimit, {
    global: false,
    timeWindow: '1 minute',
    errorResponseBuilder: () => new Failure('tooMany'),
  })

  app.post('/login', {
    bodyLimit: BODY_LIMIT,
    config: {
      access: 'public',
      // The captcha token is the only field that is validated before the handler runs.
      invalidReason: 'captcha',
      // Attempts are counted before all other work, so that a flood of logins reaches neither the
      // captcha service nor the database.
      rateLimit: loginRateLimit > 0 && {
        max: loginRateLimit,
        cache: ADDRESSES,
      },
      failures: {
        invalid: statusFailure(400, [SIN_CREDENCIALES]),
        unauthenticated: statusFailure(401, [SIN_USUARIO, INCORRECTOS]),
        tooMany: statusFailure(429, 'Demasiados intentos. Intente de nuevo más tarde.'),
        unavailable: statusFailure(
          503,
          'El servicio de validación del captcha no está disponible.',
        ),
      },
    },
    schema: {
      operationId: 'login',
      summary: 'Iniciar sesión',
      body: Login,
      response: { 200: LoginCorrecto },
    },
    // Attempts are counted by the address of the client. If the client has reset its connection,
    // the address is unknown, and the client does not wait for an answer. So its request is
    // refused.
    onRequest: async ({ ip }) => {
      if (!ip) throw new Failure('unreadable')
    },
    // The name is stored before the body is validated, so that the audit line of an invalid login
    // contains it too.
    preValidation: async (request) => {
      const nombre = request.body?.strNombreUsuario
      if (isNonEmptyText(nombre)) request.loginName = nombre.slice(0, MAX_NAME)
    },
    handler: async (request) => {
      const { strNombreUsuario, strPwd, captchaToken } = request.body
      if (!(await verifyCaptcha(captchaToken, request.clientIp))) {
        throw new AuditedFailure({ reason: 'captcha' }, 'invalid', CAPTCHA_RECHAZADO)
      }
      if (!isNonEmptyText(strNombreUsuario) || !isNonEmptyText(strPwd)) {
        throw new AuditedFailure({ reason: 'missing' }, 'invalid', SIN_CREDENCIALES)
      }
      const usuario = await authenticate(strNombreUsuario, strPwd, request.socket)
      return {
        success: true as const,
        token: app.jwt.sign(tokenFor(usuario)),
        user: {
          id: usuario.id,
          nombre: usuario.strNombreUsuario,
          idPerfil: usuario.idPerfil,
          correo: usuario.strCorreo,
          celular: usuario.strNumeroCelular,
          imagenUrl: usuario.imagenUrl,
        },
      }
    },
  })

  app.post('/logout', {
    bodyLimit: BODY_LIMIT,
    config: { access: 'session', target: ({ caller }) => caller?.id },
    schema: {
      operationId: 'logout',
      summary: 'Cerrar sesión',
      description: 'Termina todas las sesiones del usuario y borra la cookie.',
      response: { 200: Confirmation(CERRADA) },
    },
    handler: async (request, reply) => {
      await endSesiones(request.sql, request.caller)
      reply.clearCookie(COOKIE, { path: '/' })
      return { success: true as const, message: CERRADA }
    },
  })

  /**
   * Returns the active user with this name and password. Throws the Failure `unauthenticated` with
   * one of its two texts (contract, section 7) if there is none. `client` is the connection of the
   * client that waits.
   */
  async function authenticate(nombre: string, plain: string, client: Client) {
    const usuario = isName(nombre) ? await findCredenciales(sql, nombre) : undefined
    if (!usuario) {
      throw new AuditedFailure({ reason: 'unknown' }, 'unauthenticated', SIN_USUARIO)
    }
    const { id: target, strPwd: hash } = usuario
    if (!usuario.idEstadoUsuario) {
      throw new AuditedFailure({ reason: 'inactive', target }, 'unauthenticated', SIN_USUARIO)
    }
    const isCorrect = isPassword(plain) && (await passwords.compare(plain, hash, client))
    if (!isCorrect) {
      throw new AuditedFailure({ reason: 'password', target }, 'unauthenticated', INCORRECTOS)
    }
    return usuario
  }
}

/** Returns the payload of a new token (contract, section 5). `ver` is left out if it is 0. */
function tokenFor(usuario: Credenciales): Token {
  const { id, idPerfil, strNombreUsuario, versionSesion } = usuario
  const token = { id, idPerfil, nombre: strNombreUsuario }
  return versionSesion === 0 ? token : { ...token, ver: versionSesion }
}

function isNonEmptyText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

const NAME_CONSTRAINTS = textConstraints(MAX_NAME)

/** Returns whether a stored user can have this name. Other names are not looked up. */
function isName(nombre: string) {
  return violatedConstraint(NAME_CONSTRAINTS, nombre) === undefined
}

export default authRoutes
