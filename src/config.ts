import { isIP } from 'node:net'
import { type StaticDecode, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { Password } from './auth/schemas.js'
import { Text } from './http/fields.js'
import { Email } from './usuario/schemas.js'

/** Thrown by loadConfig; the message has one line for each variable at fault. */
export class ConfigError extends Error {}

/** An environment variable: what it must be, how its text is read, its value where it is not set. */
function variable<T>(description: string, read: (text: string) => T | undefined, preset?: T) {
  return Type.Transform(Type.String({ description, preset }))
    .Decode((text): T => {
      const value = read(text)
      if (value === undefined) throw new ConfigError(description)
      return value
    })
    .Encode(String)
}

const checked = (description: string, schema: TSchema) =>
  variable(description, (value) => (Value.Check(schema, value) ? value : undefined))

const secret = (value: string) => (value.length >= 32 ? value : undefined)

function integer(of: string, min: number, max: number, preset: number) {
  const read = (value: string) =>
    /^\d+$/.test(value) && Number(value) >= min && Number(value) <= max ? Number(value) : undefined
  return variable(`a whole number ${of}from ${min} to ${max}`, read, preset)
}

function choice<const T extends string>(preset: T, ...others: T[]) {
  const choices = [preset, ...others]
  const read = (value: string) => choices.find((choice) => choice === value)
  return variable(`one of ${choices.join(', ')}`, read, preset)
}

function list(description: string, isItem: (item: string) => boolean) {
  const read = (value: string) => {
    const items = value.split(',').map((item) => item.trim())
    return items.every(isItem) ? items : undefined
  }
  return variable(description, read, [])
}

function parseUrl(value: string, ...protocols: string[]) {
  const url = URL.canParse(value) ? new URL(value) : undefined
  return url && protocols.includes(url.protocol) ? url : undefined
}

/** `uploadPrefix`: another address than Cloudinary's own, `http:` included. */
function cloudinaryUrl(value: string) {
  // The SDK reads it as well, and takes nothing before its scheme.
  const url = value.startsWith('cloudinary://') ? parseUrl(value, 'cloudinary:') : undefined
  const uploadPrefix = url?.searchParams.get('upload_prefix') ?? undefined
  if (!url?.hostname || !url.username || !url.password) return undefined
  if (uploadPrefix !== undefined && !parseUrl(uploadPrefix, 'http:', 'https:')) return undefined
  return { cloudName: url.hostname, apiKey: url.username, apiSecret: url.password, uploadPrefix }
}

/** What postgres.js connects to: an address that names the first host, and all of the hosts. */
function databaseUrl(value: string) {
  const parts = /^(postgres(?:ql)?:\/\/(?:[^/?#\s]*@)?)([^/?#@\s]+)([/?]\S*)?$/.exec(value)
  const [, head = '', hosts = '', tail = ''] = parts ?? []
  const [scheme = ''] = head.split('/')
  const urls = hosts.split(',').map((host) => parseUrl(`${head}${host}${tail}`, scheme))
  const [url] = urls
  if (!url || !urls.every((url) => url?.hostname)) return undefined
  decodeURIComponent(url.username + url.password + url.pathname)
  const tls = tlsMode(url.searchParams.get('sslmode') ?? url.searchParams.get('ssl') ?? 'disable')
  if (!tls) return undefined
  // The service sees to these itself: it works on the primary alone, and begins TLS.
  for (const name of ['target_session_attrs', 'sslmode', 'ssl']) url.searchParams.delete(name)
  return {
    url: url.href,
    tls,
    hosts: urls.map((url) => ({
      host: url?.hostname.replace(/^\[|\]$/g, '') ?? '',
      port: Number(url?.port || 5432),
    })),
  }
}

/** What PostgreSQL's `sslmode` means for a connection: whether to encrypt, and whom to believe. */
function tlsMode(sslmode: string) {
  const MODES = {
    disable: 'off',
    false: 'off',
    allow: 'unverified',
    prefer: 'preferred',
    require: 'unverified',
    true: 'verified',
    'verify-ca': 'verified',
    'verify-full': 'verified',
  } as const
  return Object.hasOwn(MODES, sslmode) ? MODES[sslmode as keyof typeof MODES] : undefined
}

function isProxyRange(item: string) {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(item)) return true
  const [address = '', bits = '1', ...rest] = item.split('/')
  const most = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0
  return rest.length === 0 && /^[1-9]\d*$/.test(bits) && Number(bits) <= most
}

const Environment = Type.Object({
  DATABASE_URL: variable(
    'an address like postgres://user:password@host:5432/database, several hosts with commas',
    databaseUrl,
  ),
  JWT_SECRET: variable('a secret of at least 32 characters', secret),
  JWT_SECRET_PREVIOUS: Type.Optional(variable('a secret of at least 32 characters', secret)),
  CAPTCHA_SECRET: variable("the site's secret for the captcha verification", String),
  CAPTCHA_VERIFY_URL: variable(
    'an http(s) address',
    (value) => parseUrl(value, 'http:', 'https:')?.href,
    'https://www.google.com/recaptcha/api/siteverify',
  ),
  CLOUDINARY_URL: variable(
    'an address like cloudinary://KEY:SECRET@CLOUD, an upload_prefix in it with http(s)',
    cloudinaryUrl,
  ),
  HOST: variable('an address or host name to listen on', String, '0.0.0.0'),
  PORT: integer('', 0, 65_535, 3000),
  TRUST_PROXY: list(
    'a comma-separated list of addresses and ranges like loopback, uniquelocal, 10.0.0.0/8' +
      ' (not true and not a hop count: name the proxies instead)',
    isProxyRange,
  ),
  CORS_ORIGIN: list(
    'a comma-separated list of origins like https://admin.example.com',
    (item) => parseUrl(item, 'http:', 'https:')?.origin === item,
  ),
  DATABASE_POOL_MAX: integer('of connections ', 1, 1000, 10),
  DATABASE_PREPARE: choice('true', 'false'),
  BODY_LIMIT_MIB: integer('of MiB ', 1, 256, 10),
  LOG_LEVEL: choice('info', 'fatal', 'error', 'warn', 'debug', 'trace', 'silent'),
  ADMIN_USERNAME: Type.Optional(
    checked('a user name of at most 255 characters, all of them visible', Text({ visible: true })),
  ),
  ADMIN_PASSWORD: Type.Optional(checked('a password of at most 72 bytes', Password)),
  ADMIN_EMAIL: Type.Optional(checked('an email address', Email)),
  LOGIN_RATE_LIMIT: integer('of login attempts a minute ', 0, 1_000_000, 30),
  AUTHORIZATION: choice('enforced', 'client'),
  METRICS: choice('false', 'true'),
})

/** The environment, read: what is optional in it has its default. */
export type Config = StaticDecode<typeof Environment>

const ADMIN_VARIABLES = ['ADMIN_USERNAME', 'ADMIN_PASSWORD', 'ADMIN_EMAIL']

/**
 * Reads the configuration from environment variables; an empty variable counts as not set.
 * Throws a ConfigError that names every variable at fault and what it must be, never its value.
 */
export function loadConfig(env: Record<string, string | undefined>): Config {
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
    } else if (schema.preset !== undefined) {
      values[name] = schema.preset
    } else if (required.includes(name)) {
      problems.push(`${name} is missing: it must be ${schema.description}`)
    } else if (ADMIN_VARIABLES.includes(name) && ADMIN_VARIABLES.some((other) => env[other])) {
      problems.push(`${name} is missing: ${ADMIN_VARIABLES.join(', ')} go together`)
    }
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return values as Config
}
