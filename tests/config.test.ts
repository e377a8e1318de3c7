import { describe, expect, it } from 'vitest'
import { ConfigError, loadConfig, parseDatabaseUrl } from '../src/config.js'

const NEEDED = {
  DATABASE_URL: 'postgres://llavero:clave-de-base@db.local:5432/llavero',
  JWT_SECRET: 'un secreto de treinta y dos letras',
  CAPTCHA_SECRET: 'secreto-del-captcha',
  CLOUDINARY_URL: 'cloudinary://llave:secreto-de-nube@nube',
}

/** What each variable must be, in the service's words; HOST and CAPTCHA_SECRET can be any text. */
const VARIABLES = {
  DATABASE_URL:
    'an address like postgres://user:password@host:5432/database, several hosts with commas, ' +
    'target_session_attrs in it one of any, primary, read-write',
  JWT_SECRET: 'a secret of at least 32 characters',
  JWT_SECRET_PREVIOUS: 'a secret of at least 32 characters',
  CAPTCHA_VERIFY_URL: 'an http(s) address',
  CLOUDINARY_URL:
    'an address like cloudinary://KEY:SECRET@CLOUD, an upload_prefix in it with http(s)',
  PORT: 'a whole number from 0 to 65535',
  TRUST_PROXY:
    'a comma-separated list of addresses and ranges like loopback, uniquelocal, 10.0.0.0/8' +
    ' (not true and not a hop count: name the proxies instead)',
  CORS_ORIGIN: 'a comma-separated list of origins like https://admin.example.com',
  DATABASE_POOL_MAX: 'a whole number of connections from 1 to 1000',
  DATABASE_PREPARE: 'one of true, false',
  BODY_LIMIT_MIB: 'a whole number of MiB from 1 to 256',
  LOG_LEVEL: 'one of fatal, error, warn, info, debug, trace, silent',
  ADMIN_USERNAME: 'a user name of at most 255 characters',
  ADMIN_PASSWORD: 'a password of at most 72 bytes',
  ADMIN_EMAIL: 'an email address',
  LOGIN_RATE_LIMIT: 'a whole number of login attempts a minute from 0 to 1000000',
  AUTHORIZATION: 'one of enforced, client',
  METRICS: 'one of true, false',
}

const load = (env: Record<string, string> = {}) => loadConfig({ ...NEEDED, ...env })

/** The message that the environment is refused with. */
function refusal(env: Record<string, string | undefined>): string {
  try {
    loadConfig(env)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as Error).message
  }
  throw new Error(`accepted: ${JSON.stringify(env)}`)
}

/** The variables that the message begins its lines with. */
const named = (message: string) => message.split('\n').map((line) => line.split(' ', 1)[0])

describe('loadConfig', () => {
  it('has the documented defaults', () => {
    expect(load()).toEqual({
      databaseUrl: NEEDED.DATABASE_URL,
      databasePoolMax: 10,
      databasePrepare: true,
      jwtSecret: NEEDED.JWT_SECRET,
      jwtSecretPrevious: undefined,
      captchaSecret: NEEDED.CAPTCHA_SECRET,
      captchaVerifyUrl: 'https://www.google.com/recaptcha/api/siteverify',
      cloudinary: { cloudName: 'nube', apiKey: 'llave', apiSecret: 'secreto-de-nube' },
      host: '0.0.0.0',
      port: 3000,
      trustProxy: false,
      corsOrigin: [],
      bodyLimit: 10 * 1024 * 1024,
      logLevel: 'info',
      loginRateLimit: 30,
      authorization: 'enforced',
      metrics: false,
      administrador: undefined,
    })
  })

  it('takes an empty variable as not set', () => {
    const names = ['HOST', 'PORT', 'TRUST_PROXY', 'CORS_ORIGIN', 'DATABASE_POOL_MAX', 'LOG_LEVEL']
    const more = [
      'DATABASE_PREPARE',
      'BODY_LIMIT_MIB',
      'LOGIN_RATE_LIMIT',
      'AUTHORIZATION',
      'JWT_SECRET_PREVIOUS',
    ]
    const admin = [
      'METRICS',
      'ADMIN_USERNAME',
      'ADMIN_PASSWORD',
      'ADMIN_EMAIL',
      'CAPTCHA_VERIFY_URL',
    ]
    const empty = [...names, ...more, ...admin].map((name) => [name, ''])
    expect(load(Object.fromEntries(empty))).toEqual(load())
  })

  it('reads every variable', () => {
    const env = {
      JWT_SECRET_PREVIOUS: 'el secreto de antes, de 32 letras',
      CAPTCHA_VERIFY_URL: 'https://hcaptcha.com/siteverify',
      CLOUDINARY_URL: 'cloudinary://k:s@c?upload_prefix=http%3A%2F%2F127.0.0.1%3A9',
      HOST: '127.0.0.1',
      PORT: '0',
      TRUST_PROXY: 'loopback, uniquelocal,10.0.0.0/8,2001:db8::/32,192.0.2.1',
      CORS_ORIGIN: 'https://admin.example.com, http://localhost:5173',
      DATABASE_POOL_MAX: '3',
      DATABASE_PREPARE: 'false',
      BODY_LIMIT_MIB: '2',
      LOG_LEVEL: 'warn',
      ADMIN_USERNAME: 'raiz',
      ADMIN_PASSWORD: 'x'.repeat(72),
      ADMIN_EMAIL: 'raiz@ejemplo.com',
      LOGIN_RATE_LIMIT: '0',
      AUTHORIZATION: 'client',
      METRICS: 'true',
    }
    expect(load(env)).toEqual({
      databaseUrl: NEEDED.DATABASE_URL,
      databasePoolMax: 3,
      databasePrepare: false,
      jwtSecret: NEEDED.JWT_SECRET,
      jwtSecretPrevious: 'el secreto de antes, de 32 letras',
      captchaSecret: NEEDED.CAPTCHA_SECRET,
      captchaVerifyUrl: 'https://hcaptcha.com/siteverify',
      cloudinary: {
        cloudName: 'c',
        apiKey: 'k',
        apiSecret: 's',
        uploadPrefix: 'http://127.0.0.1:9',
      },
      host: '127.0.0.1',
      port: 0,
      trustProxy: ['loopback', 'uniquelocal', '10.0.0.0/8', '2001:db8::/32', '192.0.2.1'],
      corsOrigin: ['https://admin.example.com', 'http://localhost:5173'],
      bodyLimit: 2 * 1024 * 1024,
      logLevel: 'warn',
      loginRateLimit: 0,
      authorization: 'client',
      metrics: true,
      administrador: {
        strNombreUsuario: 'raiz',
        strPwd: 'x'.repeat(72),
        strCorreo: 'raiz@ejemplo.com',
      },
    })
  })

  it.each([
    ['DATABASE_URL', ['postgres://db.local', 'postgresql://u:p@db.local:5432/d?sslmode=require']],
    ['JWT_SECRET', ['x'.repeat(32)]],
    ['CAPTCHA_VERIFY_URL', ['http://captcha.local/verify']],
    ['CLOUDINARY_URL', ['cloudinary://k:s@c?upload_prefix=https://imagenes.local']],
    ['PORT', ['8080', '65535']],
    ['TRUST_PROXY', ['linklocal', '::1/128', '192.0.2.1/32']],
    ['DATABASE_POOL_MAX', ['1', '1000']],
    ['DATABASE_PREPARE', ['true']],
    ['BODY_LIMIT_MIB', ['1', '256']],
    ['LOG_LEVEL', ['fatal', 'error', 'info', 'debug', 'trace', 'silent']],
    ['LOGIN_RATE_LIMIT', ['1000000']],
    ['AUTHORIZATION', ['enforced']],
    ['METRICS', ['true', 'false']],
  ])('takes a good %s', (name, values) => {
    for (const value of values) expect(() => load({ [name]: value }), value).not.toThrow()
  })

  it('names every missing variable at once', () => {
    expect(named(refusal({}))).toEqual(Object.keys(NEEDED))
  })

  it('names the missing and the malformed together', () => {
    const { JWT_SECRET: _, ...rest } = NEEDED
    expect(named(refusal({ ...rest, PORT: 'abc', TRUST_PROXY: '1' }))).toEqual([
      'JWT_SECRET',
      'PORT',
      'TRUST_PROXY',
    ])
  })

  it.each([
    [
      'DATABASE_URL',
      [
        'mysql://u:p@h/d',
        'localhost:5432',
        'postgres://',
        'x',
        'postgres://u:p@h1,,h2/d',
        'postgres://u:p@h1,h2:65536/d',
        'postgres://u:p@[::1/d',
        'postgres://u:p%zz@h/d',
        'postgres://u:p@h/d?target_session_attrs=standby',
        'xpostgres://h/d',
        'postgres://h/d e',
      ],
    ],
    ['JWT_SECRET', ['x'.repeat(31)]],
    ['JWT_SECRET_PREVIOUS', ['x'.repeat(31)]],
    ['CAPTCHA_VERIFY_URL', ['siteverify', 'ftp://host/verify', '/siteverify']],
    [
      'CLOUDINARY_URL',
      [
        'https://x',
        'cloudinary://',
        ' cloudinary://llave:secreto@nube',
        'cloudinary://nube',
        'cloudinary://llave@nube',
        'cloudinary://:secreto@nube',
        'cloudinary://k:s@c?upload_prefix=file:///etc',
        'cloudinary://k:s@c?upload_prefix=',
      ],
    ],
    ['PORT', ['abc', '-1', '65536', '3000.5', '0x10', ' ']],
    [
      'TRUST_PROXY',
      [
        ...[
          'true',
          'false',
          '1',
          '0',
          '10.0.0.0/33',
          '::1/129',
          '10.0.0',
          'loopback,',
          'host.local',
        ],
        ...['10.0.0.0/', '10.0.0.0/0', '10.0.0.0/08', '10.0.0.0/8.5', '10.0.0.0/8/8'],
      ],
    ],
    [
      'CORS_ORIGIN',
      ['*', 'null', 'admin.example.com', 'https://a.example/', 'https://a.example/x', 'ws://a.x'],
    ],
    ['DATABASE_POOL_MAX', ['0', '-1', '1.5', 'ten']],
    ['DATABASE_PREPARE', ['yes', '1', 'TRUE']],
    ['BODY_LIMIT_MIB', ['0', '-1', '257', '10MB', '1.5']],
    ['LOG_LEVEL', ['verbose', 'INFO']],
    ['LOGIN_RATE_LIMIT', ['-1', 'off', '1.5']],
    ['AUTHORIZATION', ['off', 'true', 'Enforced']],
  ])('refuses a malformed %s by its name', (name, values) => {
    for (const value of values) {
      expect(named(refusal({ ...NEEDED, [name]: value })), value).toEqual([name])
    }
  })

  it('says what each variable must be', () => {
    const bad = Object.fromEntries(Object.keys(VARIABLES).map((name) => [name, '\0']))
    expect(refusal({ ...NEEDED, ...bad }).split('\n')).toEqual(
      Object.entries(VARIABLES).map(([name, words]) => `${name} must be ${words}`),
    )
    expect(refusal({ ADMIN_USERNAME: 'raiz' }).split('\n')).toEqual([
      `DATABASE_URL is missing: it must be ${VARIABLES.DATABASE_URL}`,
      `JWT_SECRET is missing: it must be ${VARIABLES.JWT_SECRET}`,
      "CAPTCHA_SECRET is missing: it must be the site's secret for the captcha verification",
      `CLOUDINARY_URL is missing: it must be ${VARIABLES.CLOUDINARY_URL}`,
      'ADMIN_PASSWORD is missing: ADMIN_USERNAME, ADMIN_PASSWORD, ADMIN_EMAIL go together',
      'ADMIN_EMAIL is missing: ADMIN_USERNAME, ADMIN_PASSWORD, ADMIN_EMAIL go together',
    ])
  })

  it.each([
    [{ ADMIN_USERNAME: 'raiz' }, ['ADMIN_PASSWORD', 'ADMIN_EMAIL']],
    [{ ADMIN_PASSWORD: 'clave' }, ['ADMIN_USERNAME', 'ADMIN_EMAIL']],
    [{ ADMIN_USERNAME: 'raiz', ADMIN_EMAIL: 'raiz@ejemplo.com' }, ['ADMIN_PASSWORD']],
    [{ ADMIN_USERNAME: 'raiz', ADMIN_PASSWORD: 'clave', ADMIN_EMAIL: '' }, ['ADMIN_EMAIL']],
  ])('refuses the administrator in part: %j', (env, missing) => {
    expect(named(refusal({ ...NEEDED, ...env }))).toEqual(missing)
  })

  it.each([
    ['ADMIN_USERNAME', 'x'.repeat(256)],
    ['ADMIN_USERNAME', '   '],
    ['ADMIN_PASSWORD', 'ñ'.repeat(37)],
    ['ADMIN_EMAIL', 'raiz'],
  ])('refuses a malformed %s', (name, value) => {
    const admin = {
      ADMIN_USERNAME: 'raiz',
      ADMIN_PASSWORD: 'clave',
      ADMIN_EMAIL: 'raiz@ejemplo.com',
    }
    const message = refusal({ ...NEEDED, ...admin, [name]: value })
    expect(named(message)).toEqual([name])
    expect(message).not.toContain(value)
  })

  it('echoes no value, whatever is wrong', () => {
    const message = refusal({
      DATABASE_URL: 'mysql://llavero:clave-de-base@db',
      JWT_SECRET: 'secreto-corto',
      CLOUDINARY_URL: 'https://llave:secreto-de-nube@nube',
      ADMIN_USERNAME: 'raiz-oculta',
      ADMIN_PASSWORD: `clave-de-administrador${'x'.repeat(72)}`,
    })
    expect(named(message).sort()).toEqual([
      'ADMIN_EMAIL',
      'ADMIN_PASSWORD',
      'CAPTCHA_SECRET',
      'CLOUDINARY_URL',
      'DATABASE_URL',
      'JWT_SECRET',
    ])
    expect(message).not.toMatch(/clave-de|secreto-corto|secreto-de-nube|raiz-oculta|mysql/)
  })
})

describe('parseDatabaseUrl', () => {
  const parse = (value: string) => {
    const { urls, sessionAttrs } = parseDatabaseUrl(value)
    return { urls: urls.map(({ href }) => href), sessionAttrs }
  }

  it('takes any session of one host', () => {
    const url = 'postgres://u:p@h:5433/d?sslmode=require'
    expect(parse(url)).toEqual({ urls: [url], sessionAttrs: 'any' })
  })

  it('gives each of several hosts all the rest, and wants to write there', () => {
    expect(parse('postgresql://u:p@h1,h2:5433,[::1]:5434/d?sslmode=require')).toEqual({
      urls: [
        'postgresql://u:p@h1/d?sslmode=require',
        'postgresql://u:p@h2:5433/d?sslmode=require',
        'postgresql://u:p@[::1]:5434/d?sslmode=require',
      ],
      sessionAttrs: 'read-write',
    })
  })

  it.each(['any', 'primary', 'read-write'])('lets target_session_attrs=%s decide', (attrs) => {
    const url = (host: string) => `postgres://u:p@${host}/d?target_session_attrs=${attrs}`
    expect(parse(url('h1,h2'))).toEqual({ urls: [url('h1'), url('h2')], sessionAttrs: attrs })
    expect(parse(url('h1'))).toEqual({ urls: [url('h1')], sessionAttrs: attrs })
  })

  it('leaves a comma and an @ in the password where they are', () => {
    expect(parse('postgres://u:a,b@c%2Cd%40@h1,h2/d').urls).toEqual([
      'postgres://u:a,b%40c%2Cd%40@h1/d',
      'postgres://u:a,b%40c%2Cd%40@h2/d',
    ])
  })
})
