import { describe, expect, it } from 'vitest'
import { ConfigError, loadConfig } from '../src/config.js'
import { SECRETS } from './service.js'

const NEEDED = {
  DATABASE_URL: 'postgres://llavero:clave-de-base@db.local:5432/llavero',
  ...SECRETS,
}

const ADMIN = {
  ADMIN_USERNAME: 'raiz',
  ADMIN_PASSWORD: 'clave',
  ADMIN_EMAIL: 'raiz@ejemplo.com',
}

const load = (env: Record<string, string> = {}) => loadConfig({ ...NEEDED, ...env })

/** The names of all variables. */
const VARIABLES = Object.keys(load())

/** Returns the message of the ConfigError for an environment. */
function refusal(env: Record<string, string | undefined>): string {
  try {
    loadConfig(env)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as Error).message
  }
  throw new Error(`accepted: ${JSON.stringify(env)}`)
}

/** Returns the variables with which the lines of a message begin. */
const named = (message: string) => message.split('\n').map((line) => line.split(' ', 1)[0])

describe('loadConfig', () => {
  it('has the documented defaults', () => {
    expect(load()).toEqual({
      ...NEEDED,
      DATABASE_URL: {
        url: `${NEEDED.DATABASE_URL}?sslmode=disable`,
        hosts: [{ host: 'db.local', port: 5432 }],
        database: 'llavero',
        isVerified: false,
      },
      JWT_SECRET_PREVIOUS: '',
      CLOUDINARY_URL: {
        cloud_name: 'nube',
        api_key: 'llave',
        api_secret: 'secreto-de-nube',
        upload_prefix: undefined,
      },
      CAPTCHA_VERIFY_URL: 'https://www.google.com/recaptcha/api/siteverify',
      HOST: '0.0.0.0',
      PORT: 3000,
      TRUST_PROXY: [],
      CORS_ORIGIN: [],
      DATABASE_POOL_MAX: 10,
      DATABASE_PREPARE: 'true',
      BODY_LIMIT_MIB: 10,
      LOG_LEVEL: 'info',
      LOGIN_RATE_LIMIT: 30,
      AUTHORIZATION: 'enforced',
      ADMIN_USERNAME: '',
      ADMIN_PASSWORD: '',
      ADMIN_EMAIL: '',
      METRICS: 'false',
      DOCS: 'true',
    })
  })

  it('treats an empty variable as missing', () => {
    const names = VARIABLES.filter((name) => !(name in NEEDED))
    expect(load(Object.fromEntries(names.map((name) => [name, ''])))).toEqual(load())
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
      ...ADMIN,
      LOGIN_RATE_LIMIT: '0',
      AUTHORIZATION: 'client',
      METRICS: 'true',
      DOCS: 'false',
    }
    expect(load(env)).toEqual({
      ...NEEDED,
      ...env,
      DATABASE_URL: expect.anything(),
      CLOUDINARY_URL: {
        cloud_name: 'c',
        api_key: 'k',
        api_secret: 's',
        upload_prefix: 'http://127.0.0.1:9',
      },
      PORT: 0,
      TRUST_PROXY: ['loopback', 'uniquelocal', '10.0.0.0/8', '2001:db8::/32', '192.0.2.1'],
      CORS_ORIGIN: ['https://admin.example.com', 'http://localhost:5173'],
      DATABASE_POOL_MAX: 3,
      BODY_LIMIT_MIB: 2,
      LOGIN_RATE_LIMIT: 0,
    })
  })

  it.each([
    [
      'DATABASE_URL',
      ['postgres://db.local', 'postgresql://u:p@h1,h2:5433/d?target_session_attrs=primary'],
      [
        ...['mysql://u:p@h/d', 'postgres://', 'xpostgres://h/d'],
        ...['postgres://u:p@h1,,h2/d', 'postgres://u:p@h1,h2:65536/d', 'postgres://u:p@[::1/d'],
        ...['postgres://u:p@h/d?sslmode=si', 'postgres://a%4:1@h/d', 'postgres://u:p@h/%'],
      ],
    ],
    ['JWT_SECRET', ['x'.repeat(32)], ['x'.repeat(31)]],
    ['JWT_SECRET_PREVIOUS', ['x'.repeat(32)], ['x'.repeat(31)]],
    [
      'CAPTCHA_VERIFY_URL',
      ['http://captcha.local/verify'],
      ['siteverify', 'ftp://host/verify', '/siteverify', 'https://user@host', 'https://:pw@host'],
    ],
    [
      'CLOUDINARY_URL',
      ['cloudinary://k:s@c?upload_prefix=https://imagenes.local'],
      [
        ...['https://x', 'cloudinary://', ' cloudinary://llave:secreto@nube', 'cloudinary://nube'],
        ...['cloudinary://llave@nube', 'cloudinary://:secreto@nube'],
        ...['cloudinary://k:s@c?upload_prefix=file:///etc', 'cloudinary://k:s@c?upload_prefix='],
      ],
    ],
    ['PORT', ['8080', '65535'], ['abc', '-1', '65536', '3000.5', '0x10', ' ']],
    [
      'TRUST_PROXY',
      ['linklocal', '::1/128', '192.0.2.1/32'],
      [
        ...['true', '1', '10.0.0.0/33', '::1/129', '10.0.0', 'loopback,', 'a.local'],
        ...['10.0.0.0/', '10.0.0.0/0', '10.0.0.0/8.5', '10.0.0.0/8/8'],
        '010.0.0.1',
      ],
    ],
    [
      'CORS_ORIGIN',
      ['http://localhost:5173'],
      ['*', 'null', 'admin.example.com', 'https://a.example/', 'https://a.example/x', 'ws://a.x'],
    ],
    ['HOST', ['::', 'localhost'], [' ', 'local\u200bhost']],
    ['DATABASE_POOL_MAX', ['1', '1000'], ['0', '1001']],
    ['BODY_LIMIT_MIB', ['1', '256'], ['0', '257']],
    [
      'LOG_LEVEL',
      ['fatal', 'error', 'warn', 'audit', 'info', 'debug', 'trace', 'silent'],
      ['verbose', 'INFO'],
    ],
    ['LOGIN_RATE_LIMIT', ['1000000'], ['1000001']],
    ['AUTHORIZATION', ['enforced'], ['off', 'true', 'Enforced']],
    ['ADMIN_USERNAME', ['x'.repeat(255)], ['x'.repeat(256), '   ']],
    ['ADMIN_PASSWORD', ['ñ'.repeat(36)], ['ñ'.repeat(37)]],
    ['ADMIN_EMAIL', [`${'x'.repeat(250)}@x.es`], [`${'x'.repeat(251)}@x.es`, 'raiz']],
  ])(
    'accepts valid values of %s, and names the variable in the error for an invalid one',
    (name, good, bad) => {
      const env = { ...NEEDED, ...ADMIN }
      for (const value of good) expect(() => loadConfig({ ...env, [name]: value })).not.toThrow()
      for (const value of bad) {
        expect(named(refusal({ ...env, [name]: value })), value).toEqual([name])
      }
    },
  )

  it('describes in its message what each variable must be', () => {
    const all = Object.fromEntries(VARIABLES.map((name) => [name, '\0']))
    const bad = { ...all, ADMIN_PASSWORD: 'x'.repeat(73) }
    // CAPTCHA_SECRET accepts any text.
    const names = VARIABLES.filter((name) => name !== 'CAPTCHA_SECRET')
    expect(refusal(bad).split('\n')).toEqual(
      names.map((name) => expect.stringMatching(`^${name} must be (an?|one of|the) \\w.{6}`)),
    )
    const needed = (name: string) => expect.stringMatching(`^${name} is missing: it must be \\w`)
    expect(refusal({ ADMIN_USERNAME: 'raiz', ADMIN_PASSWORD: '' }).split('\n')).toEqual([
      ...Object.keys(NEEDED).map(needed),
      'ADMIN_PASSWORD is missing: ADMIN_USERNAME, ADMIN_PASSWORD, ADMIN_EMAIL go together',
      'ADMIN_EMAIL is missing: ADMIN_USERNAME, ADMIN_PASSWORD, ADMIN_EMAIL go together',
    ])
  })

  it.each(Object.keys(ADMIN))('names %s when it is missing beside the other two', (name) => {
    expect(named(refusal({ ...NEEDED, ...ADMIN, [name]: '' }))).toEqual([name])
  })

  it.each([
    ['?sslmode=prefer', 'prefer', false],
    ['?sslmode=require', 'require', false],
    ['?ssl=true', 'true', true],
    ['?sslmode=verify-ca', 'verify-ca', true],
    ['?sslmode=verify-full&application_name=x', 'verify-full', true],
  ])(
    'reads from the query %j of DATABASE_URL that the TLS mode is %j',
    (query, mode, isVerified) => {
      const { DATABASE_URL } = load({ DATABASE_URL: `${NEEDED.DATABASE_URL}${query}` })
      expect(DATABASE_URL.isVerified).toBe(isVerified)
      expect(new URL(DATABASE_URL.url).searchParams.get('sslmode')).toBe(mode)
    },
  )

  it('reads the hosts of DATABASE_URL, of which the driver gets only the first', () => {
    const { hosts, url } = load({
      DATABASE_URL: 'postgres://u:p@[::1]:5433,otra.local/d',
    }).DATABASE_URL
    expect(hosts).toEqual([
      { host: '::1', port: 5433 },
      { host: 'otra.local', port: 5432 },
    ])
    expect(url).toBe('postgres://u:p@[::1]:5433/d?sslmode=disable')
  })

  it('never repeats a value in its message', () => {
    const message = refusal({
      DATABASE_URL: 'mysql://llavero:clave-de-base@db',
      JWT_SECRET: 'secreto-corto',
      CLOUDINARY_URL: 'https://llave:secreto-de-nube@nube',
      ADMIN_USERNAME: 'raiz-oculta',
      ADMIN_PASSWORD: `clave-de-administrador${'x'.repeat(72)}`,
    })
    expect(message).not.toMatch(/clave-de|secreto-corto|secreto-de-nube|raiz-oculta|mysql/)
  })
})
