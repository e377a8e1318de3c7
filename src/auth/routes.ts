import rateLimit from '@fastify/rate-limit'
import { statusFailure } from '../answers.js'
import { Failure } from '../failure.js'
import { MAX_PASSWORD_BYTES } from '../fields.js'
import { Confirmacion } from '../schemas.js'
import type { RoutePlugin } from '../validation.js'
import { sesionOf } from './access.js'
import { COOKIE } from './plugin.js'
import { endSesiones, findCredenciales } from './queries.js'
import { CAPTCHA_RECHAZADO, Login, LoginCorrecto } from './schemas.js'

const SIN_CREDENCIALES = 'Usuario y contraseña son obligatorios'
const SIN_USUARIO = 'El usuario no existe o su estado es the service.'
const INCORRECTOS = 'Usuario o contraseña incorrectos.'

const authRoutes: RoutePlugin<{ loginRateLimit: number }> = async (app, { loginRateLimit }) => {
  const { sql, passwords, verifyCaptcha } = app
  await app.register(rateLimit, {
    global: false,
    timeWindow: '1 minute',
    errorResponseBuilder: () => new Failure('tooMany'),
  })

  app.route({
    method: 'POST',
    url: '/login',
    config: {
      access: 'public',
      waitsOutside: true,
      // Counted before anything else: a flood reaches neither the captcha service nor the database.
      rateLimit: loginRateLimit > 0 && { max: loginRateLimit },
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
    schema: { summary: 'Iniciar sesión', body: Login, response: { 200: LoginCorrecto } },
    handler: async ({ body, ip }) => {
      if (!(await verifyCaptcha(body.captchaToken, ip))) {
        throw new Failure('invalid', CAPTCHA_RECHAZADO)
      }
      const { strNombreUsuario, strPwd } = body
      if (!isText(strNombreUsuario) || !isText(strPwd)) {
        throw new Failure('invalid', SIN_CREDENCIALES)
      }
      const usuario = await authenticate(strNombreUsuario, strPwd)
      const { id, idPerfil, strNombreUsuario: nombre, versionSesion: ver } = usuario
      return {
        success: true as const,
        token: app.jwt.sign({ id, idPerfil, nombre, ...(ver > 0 && { ver }) }),
        user: {
          id,
          nombre,
          idPerfil,
          correo: usuario.strCorreo,
          celular: usuario.strNumeroCelular,
          imagenUrl: usuario.imagenUrl,
        },
      }
    },
  })

  app.route({
    method: 'POST',
    url: '/logout',
    config: { access: 'session' },
    schema: {
      summary: 'Cerrar sesión',
      description: 'Termina todas las sesiones del usuario y borra la cookie.',
      response: { 200: Confirmacion('Sesión cerrada correctamente') },
    },
    handler: async (request, reply) => {
      const { id } = sesionOf(request)
      request.target = id
      await endSesiones(sql, id)
      reply.clearCookie(COOKIE, { path: '/' })
      return { success: true as const, message: 'Sesión cerrada correctamente' as const }
    },
  })

  /** The active user with this name and password; throws the two 401s of contract section 7. */
  async function authenticate(nombre: string, plain: string) {
    // PostgreSQL refuses a NUL in a parameter, and no stored name has one.
    const usuario = nombre.includes('\0') ? undefined : await findCredenciales(sql, nombre)
    if (!usuario?.idEstadoUsuario) {
      throw new Failure('unauthenticated', SIN_USUARIO)
    }
    const { strPwd: hash } = usuario
    if (!isComparable(plain) || !(await passwords.compare(plain, hash))) {
      throw new Failure('unauthenticated', INCORRECTOS)
    }
    return usuario
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** What no stored password can be, bcrypt would compare after cutting it. */
const isComparable = (plain: string) =>
  Buffer.byteLength(plain) <= MAX_PASSWORD_BYTES && !plain.includes('\0')

export default authRoutes
