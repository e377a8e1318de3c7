import { isIP } from 'node:net'
import { type StaticDecode, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { Correo, Password, Texto } from './fields.js'

export interface Cloudinary {
  cloudName: string
  apiKey: string
  apiSecret: string
  /** Another address than Cloudinary's own, `http:` included. */
  uploadPrefix?: string | undefined
}

/** Thrown by loadConfig; the message has one line for each variable at fault. */
export class ConfigError extends Error {}

/** An environment variable: what it must be, for the message, and how its text is read. */
function variable<T>(description: string, read: (text: string) => T | undefined) {
  return Type.Transform(Type.String({ description }))
    .Decode((text): T => {
      const value = read(text)
      if (value === undefined) throw new ConfigError(description)
      return value
    })
    .Encode(String)
}

const text = (description: string, { min = 1 } = {}) =>
  variable(description, (value) => (value.length >= min ? value : undefined))

const integer = (description: string, min: number, max: number) =>
  variable(`a whole number ${description}from ${min} to ${max}`, (value) =>
    /^\d+$/.test(value) && Number(value) >= min && Number(value) <= max ? Number(value) : undefined,
  )

const choice = <const T extends string>(...choices: T[]) =>
  variable(`one of ${choices.join(', ')}`, (value) => choices.find((choice) => choice === value))

const list = (description: string, isItem: (item: string) => boolean) =>
  variable(description, (value) => {
    const items = value.split(',').map((item) => item.trim())
    return items.every(isItem) ? items : undefined
  })

function parseUrl(value: string, ...protocols: string[]) {
  const url = URL.canParse(value) ? new URL(value) : undefined
  return url && protocols.includes(url.protocol) ? url : undefined
}

function cloudinaryUrl(value: string): Cloudinary | undefined {
  // The SDK reads it as well, and takes nothing before its scheme.
  const url = value.startsWith('cloudinary://') ? parseUrl(value, 'cloudinary:') : undefined
  const uploadPrefix = url?.searchParams.get('upload_prefix') ?? undefined
  if (!url?.hostname || !url.username || !url.password) return undefined
  if (uploadPrefix !== undefined && !parseUrl(uploadPrefix, 'http:', 'https:')) return undefined
  return { cloudName: url.hostname, apiKey: url.username, apiSecret: url.password, uploadPrefix }
}

function isProxyRange(item: string) {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(item)) return true
  const [address = '', bits, ...rest] = item.split('/')
  const version = isIP(address)
  if (!version || rest.length > 0) return false
  return (
    bits === undefined || (/^[1-9]\d*$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
  )
}

/** What may be asked of a session of the database, as libpq calls it. */
const SESSION_ATTRS = ['any', 'primary', 'read-write'] as const

/**
 * What a DATABASE_URL says: an address for each of its hosts, and what a session there must allow,
 * which is to write where there are several hosts and it does not say. Throws for a malformed one.
 */
export function parseDatabaseUrl(value: string) {
  const parts = /^(postgres(?:ql)?:\/\/(?:[^/?#\s]*@)?)([^/?#@\s]+)([/?]\S*)?$/.exec(value)
  if (!parts) throw new ConfigError('not an address')
  const [, head, hosts = '', tail = ''] = parts
  const urls = hosts.split(',').map((host) => new URL(`${head}${host}${tail}`))
  for (const { hostname, username, password, pathname } of urls) {
    decodeURIComponent(username + password + pathname)
    if (!hostname) throw new ConfigError('no host')
  }
  const asked = urls[0]?.searchParams.get('target_session_attrs')
  const attrs = asked ?? (urls.length > 1 ? 'read-write' : 'any')
  const sessionAttrs = SESSION_ATTRS.find((known) => known === attrs)
  if (!sessionAttrs) throw new ConfigError('unknown target_session_attrs')
  return { urls, sessionAttrs }
}

const CAPTCHA_VERIFY_URL = 'https://www.google.com/recaptcha/api/siteverify'

const Environment = Type.Object({
  DATABASE_URL: variable(
    'an address like postgres://user:password@host:5432/database, several hosts with commas,' +
      ' target_session_attrs in it one of any, primary, read-write',
    (value) => parseDatabaseUrl(value) && value,
  ),
  JWT_SECRET: text('a secret of at least 32 characters', { min: 32 }),
  JWT_SECRET_PREVIOUS: Type.Optional(text('a secret of at least 32 characters', { min: 32 })),
  CAPTCHA_SECRET: text("the site's secret for the captcha verification"),
  CAPTCHA_VERIFY_URL: Type.Optional(
    variable('an http(s) address', (value) => parseUrl(value, 'http:', 'https:')?.href),
  ),
  CLOUDINARY_URL: variable(
    'an address like cloudinary://KEY:SECRET@CLOUD, an upload_prefix in it with http(s)',
    cloudinaryUrl,
  ),
  HOST: Type.Optional(text('an address or host name to listen on')),
  PORT: Type.Optional(integer('', 0, 65_535)),
  TRUST_PROXY: Type.Optional(
    list(
      'a comma-separated list of addresses and ranges like loopback, uniquelocal, 10.0.0.0/8' +
        ' (not true and not a hop count: name the proxies instead)',
      isProxyRange,
    ),
  ),
  CORS_ORIGIN: Type.Optional(
    list(
      'a comma-separated list of origins like https://admin.example.com',
      (item) => parseUrl(item, 'http:', 'https:')?.origin === item,
    ),
  ),
  DATABASE_POOL_MAX: Type.Optional(integer('of connections ', 1, 1000)),
  DATABASE_PREPARE: Type.Optional(choice('true', 'false')),
  BODY_LIMIT_MIB: Type.Optional(integer('of MiB ', 1, 256)),
  LOG_LEVEL: Type.Optional(choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent')),
  ADMIN_USERNAME: Type.Optional(
    variable('a user name of at most 255 characters', (value) =>
      Value.Check(Texto(), value) ? value : undefined,
    ),
  ),
  ADMIN_PASSWORD: Type.Optional(
    variable('a password of at most 72 bytes', (value) =>
      Value.Check(Password(), value) ? value : undefined,
    ),
  ),
  ADMIN_EMAIL: Type.Optional(
    variable('an email address', (value) => (Value.Check(Correo, value) ? value : undefined)),
  ),
  LOGIN_RATE_LIMIT: Type.Optional(integer('of login attempts a minute ', 0, 1_000_000)),
  AUTHORIZATION: Type.Optional(choice('enforced', 'client')),
  METRICS: Type.Optional(choice('true', 'false')),
})
type Environment = StaticDecode<typeof Environment>

const ADMIN_VARIABLES = ['ADMIN_USERNAME', 'ADMIN_PASSWORD', 'ADMIN_EMAIL'] as const

/**
 * Reads the configuration from environment variables; an empty variable counts as not set.
 * Throws a ConfigError that names every variable at fault and what it must be, never its value.
 */
export function loadConfig(env: Record<string, string | undefined>) {
  const problems: string[] = []
  const values: Record<string, unknown> = {}
  const required: string[] = Environment.required ?? []
  for (const [name, schema] of Object.entries(Environment.properties)) {
    const value = env[name]
    if (value) {
      try {
        values[name] = Value.Decode(schema, value)
      } catch {
        problems.push(`${name} must be ${schema.description}`)
      }
    } else if (required.includes(name)) {
      problems.push(`${name} is missing: it must be ${schema.description}`)
    }
  }
  if (ADMIN_VARIABLES.some((name) => env[name])) {
    for (const name of ADMIN_VARIABLES.filter((name) => !env[name])) {
      problems.push(`${name} is missing: ${ADMIN_VARIABLES.join(', ')} go together`)
    }
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return fromEnvironment(values as Environment)
}

export type Config = ReturnType<typeof fromEnvironment>

function fromEnvironment(env: Environment) {
  return {
    databaseUrl: env.DATABASE_URL,
    databasePoolMax: env.DATABASE_POOL_MAX ?? 10,
    databasePrepare: env.DATABASE_PREPARE !== 'false',
    jwtSecret: env.JWT_SECRET,
    jwtSecretPrevious: env.JWT_SECRET_PREVIOUS,
    captchaSecret: env.CAPTCHA_SECRET,
    captchaVerifyUrl: env.CAPTCHA_VERIFY_URL ?? CAPTCHA_VERIFY_URL,
    cloudinary: env.CLOUDINARY_URL,
    host: env.HOST ?? '0.0.0.0',
    port: env.PORT ?? 3000,
    trustProxy: env.TRUST_PROXY ?? false,
    corsOrigin: env.CORS_ORIGIN ?? [],
    bodyLimit: (env.BODY_LIMIT_MIB ?? 10) * 1024 * 1024,
    logLevel: env.LOG_LEVEL ?? 'info',
    loginRateLimit: env.LOGIN_RATE_LIMIT ?? 30,
    authorization: env.AUTHORIZATION ?? 'enforced',
    metrics: env.METRICS === 'true',
    administrador:
      env.ADMIN_USERNAME && env.ADMIN_PASSWORD && env.ADMIN_EMAIL
        ? {
            strNombreUsuario: env.ADMIN_USERNAME,
            strPwd: env.ADMIN_PASSWORD,
            strCorreo: env.ADMIN_EMAIL,
          }
        : undefined,
  }
}
