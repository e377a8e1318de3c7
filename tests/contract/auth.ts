import { expect } from 'vitest'
import { statusCodeAnswer } from '../answers.js'
import { ADMIN } from '../app.js'
import { ANA } from './rows.js'
import { type Contracts, LONG, MISSING, NUL, rule, withField } from './rules.js'

const NO_CAPTCHA = statusCodeAnswer(400, 'Fallo en la validación del captcha.')
const NO_CREDENTIALS = statusCodeAnswer(400, 'Usuario y contraseña son obligatorios')

export const AUTH_ENDPOINTS = {
  'POST /api/auth/login': {
    body: { strNombreUsuario: 'ana', strPwd: ADMIN.strPwd, captchaToken: 'humano' },
    answer: {
      success: true,
      token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      user: {
        id: 2,
        nombre: 'ana',
        idPerfil: 2,
        correo: ANA.strCorreo,
        celular: ANA.strNumeroCelular,
        imagenUrl: ANA.imagenUrl,
      },
    },
    same: {
      'accepts a captcha token of 8,192 characters': [{ captchaToken: 'x'.repeat(8192) }],
    },
    rules: [
      rule(
        'answers 400 when the captcha token is missing, invalid or rejected',
        withField('captchaToken', [
          undefined,
          null,
          '',
          5,
          true,
          [],
          {},
          'rechazar',
          'x'.repeat(8193),
        ]),
        NO_CAPTCHA,
      ),
      rule(
        'answers 400 when strNombreUsuario is missing',
        withField('strNombreUsuario', MISSING),
        NO_CREDENTIALS,
      ),
      rule('answers 400 when strPwd is missing', withField('strPwd', MISSING), NO_CREDENTIALS),
      rule(
        'answers 401 when no active user has exactly this name',
        withField('strNombreUsuario', ['nadie', 'eva', 'ANA', ' ana', NUL, LONG]),
        statusCodeAnswer(401, 'El usuario no existe o su estado es the service.'),
      ),
      rule(
        'answers 401 when the password is wrong',
        withField('strPwd', ['otra clave', 'x'.repeat(73), NUL, LONG]),
        statusCodeAnswer(401, 'Usuario o contraseña incorrectos.'),
      ),
    ],
  },
} satisfies Contracts
