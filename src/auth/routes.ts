import rateLimit, { type CreateRateLimitOptions } from '@fastify/rate-limit'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { onRequestAsyncHookHandler } from 'fastify'
import type { TokenPayload } from '../access/caller.js'
import type { Passwords } from '../access/password.js'
import { RefusedFailure } from '../access/refusal.js'
import { TOKEN_COOKIE } from '../access/token.js'
import type { Config } from '../config.js'
import type { Sql } from '../database/sql.js'
import { ConfirmationOf, success } from '../http/answers/envelopes.js'
import { Failure, statusCodeAnswer, USUAL_ANSWERS } from '../http/answers/failures.js'
import { UNCOUNTED_BYTES } from '../http/limits/bodies.js'
import { captchaVerifier } from './captcha.js'
import {
  beginSesion,
  endSesiones,
  findCredenciales,
  findOwnCredenciales,
  updatePassword,
} from './queries.js'
import {
  CambioDePassword,
  type Credenciales,
  Login,
  LoginCorrecto,
  PasswordCambiada,
  REFUSED_CAPTCHA,
} from './schemas.js'

const MISSING_CREDENTIALS = 'Usuario y contraseña son obligatorios'
const WRONG_CREDENTIALS = 'Usuario o contraseña incorrectos.'
const SAME_PASSWORD = 'La contraseña nueva debe ser distinta'
const LOGGED_OUT = { success: true, message: 'Sesión cerrada correctamente' } as const

/**
 * For how many client addresses attempts are counted. For users it is the plugin's default, 5,000.
 */
const MAX_ADDRESSES = 100_000

interface Options {
  pool: Sql
  passwords: Passwords
  config: Config
}

const authRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool, passwords, config }) => {
  const verifyCaptcha = captchaVerifier(config)
  await app.register(rateLimit, {
    global: false,
    // The plugin has no value for `no limit`.
    max: config.LOGIN_RATE_LIMIT || Number.MAX_SAFE_INTEGER,
    cache: MAX_ADDRESSES,
  })
  // The logins and the changes of a password from one address share a counter.
  const limitByAddress = limitAttempts()
  const limitByUser = limitAttempts({ keyGenerator: ({ caller }) => caller.id })

  app.post('/login', {
    // Bodies of this size do not count towards the memory for bodies, so no login is refused
    // because the bodies of others fill it.
    bodyLimit: UNCOUNTED_BYTES,
    config: {
      access: 'public',
      failures: {
        invalid: statusCodeAnswer(400, MISSING_CREDENTIALS),
        // The contract (section 7) demands exactly this text, with the English words `the service`
        // in it.
        unauthenticated: statusCodeAnswer(
          401,
          'El usuario no existe o su estado es the service.',
          WRONG_CREDENTIALS,
        ),
        tooMany: USUAL_ANSWERS.tooMany,
        unavailable: statusCodeAnswer(
          503,
          'El servicio de validación del captcha no está disponible.',
        ),
      },
    },
    schema: {
      operationId: 'login',
      summary: 'Iniciar sesión',
      description: 'No necesita sesión.',
      body: Login,
      response: { 200: LoginCorrecto },
    },
    onRequest: limitByAddress,
    handler: async ({ body, ip, id }) => {
      const { strNombreUsuario, strPwd, captchaToken } = body
      if (!(await verifyCaptcha(captchaToken, ip))) throw new Failure('invalid', REFUSED_CAPTCHA)
      if (!strNombreUsuario || !strPwd) throw new Failure('invalid')
      const found = await findCredenciales(pool, strNombreUsuario)
      const credenciales = await authenticate(found, strPwd)
      const user = await beginSesion(pool, credenciales, { ip, idPeticion: id })
      if (!user) throw new Failure('unauthenticated')
      return success({ token: signToken(user), user })
    },
  })

  app.put('/password', {
    config: {
      access: 'session',
      failures: {
        invalid: statusCodeAnswer(400, SAME_PASSWORD),
        unauthenticated: statusCodeAnswer(
          401,
          ...USUAL_ANSWERS.unauthenticated.messages,
          WRONG_CREDENTIALS,
        ),
        tooMany: USUAL_ANSWERS.tooMany,
      },
    },
    schema: {
      operationId: 'updatePassword',
      summary: 'Cambiar la propia contraseña',
      description: 'Termina todas las sesiones del usuario. El token nuevo es el único válido.',
      body: CambioDePassword,
      response: { 200: PasswordCambiada },
    },
    onRequest: [limitByAddress, limitByUser],
    handler: async ({ sql, caller, body }) => {
      const { strPwd, strPwdNueva } = body
      const found = await findOwnCredenciales(sql, caller)
      await authenticate(found, strPwd, caller.id)
      if (strPwd === strPwdNueva) throw new Failure('invalid')
      const hash = await passwords.hash(strPwdNueva, caller.id)
      const payload = await updatePassword(sql, hash, caller)
      return success({ token: signToken(payload) })
    },
  })

  app.post('/logout', {
    bodyLimit: UNCOUNTED_BYTES,
    config: { access: 'session' },
    schema: {
      operationId: 'logout',
      summary: 'Cerrar sesión',
      description: 'Termina todas las sesiones del usuario y borra la cookie.',
      response: { 200: ConfirmationOf(LOGGED_OUT) },
    },
    handler: async (request, reply) => {
      await endSesiones(request.sql, request.caller)
      reply.clearCookie(TOKEN_COOKIE)
      return LOGGED_OUT
    },
  })

  /**
   * Returns a hook that counts attempts to give a password, by default those of each address. The
   * hook throws the Failure `tooMany` for each attempt above the limit in a minute. A login is
   * counted before its body is read, so a flood of logins reaches neither the captcha service nor
   * the database. A change of the password is counted after the look-up of the session.
   */
  function limitAttempts(options?: CreateRateLimitOptions): onRequestAsyncHookHandler {
    const count = app.createRateLimit(options)
    return async (request, reply) => {
      const attempts = await count(request)
      // `isAllowed` is always false, because no address is exempt. Only TypeScript needs its check.
      if (attempts.isAllowed || !attempts.isExceeded) return
      reply.header('retry-after', attempts.ttlInSeconds)
      throw new Failure('tooMany')
    }
  }

  /**
   * Returns `found` if there is such a user, who is active and has this password. Otherwise throws
   * the Failure `unauthenticated`, with the text WRONG_CREDENTIALS if the password is wrong
   * (contract, section 7). `userId` is the id of the caller, if there is a session.
   */
  async function authenticate(found: Credenciales | undefined, plain: string, userId?: number) {
    if (!found) throw new Failure('unauthenticated')
    const who = { id: found.id, nombre: found.strNombreUsuario }
    if (!found.idEstadoUsuario) {
      throw new RefusedFailure({ who, reason: 'inactive' }, 'unauthenticated')
    }
    if (!(await passwords.compare(plain, found.strPwd, userId))) {
      throw new RefusedFailure({ who, reason: 'password' }, 'unauthenticated', WRONG_CREDENTIALS)
    }
    return found
  }

  /**
   * Returns a new token. The contract's token (section 5) has no `ver`, so a `ver` of 0 is left
   * out.
   */
  function signToken({ id, idPerfil, nombre, ver }: TokenPayload) {
    return app.jwt.sign({ id, idPerfil, nombre, ver: ver || undefined })
  }
}

export default authRoutes
