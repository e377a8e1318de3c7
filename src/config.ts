import { isIP } from 'node:net'
import {
  brokenConstraint,
  type Constraint,
  hasAtMostBytes,
  isEmail,
  isStorable,
  isVisible,
  textConstraints,
} from './http/constraints.js'

/** Thrown by loadConfig. The message has one line for each invalid variable. */
export class ConfigError extends Error {}

/** The longest password, in bytes. bcrypt ignores any further bytes. */
export const MAX_PASSWORD_BYTES = 72
/** The greatest length of user names and of email addresses, in characters. */
const MAX_TEXT = 255

/** The rules for the value of one environment variable. */
interface Variable<Value> {
  /** The requirement for the text. It completes a sentence that begins with "must be". */
  mustBe: string
  /** Returns the value that the text stands for, or undefined if the text is invalid. */
  parse(text: string): Value | undefined
  isRequired: boolean
  /** The value if the variable is not set. */
  default?: Value
}

function required<Value>(mustBe: string, parse: Variable<Value>['parse']): Variable<Value> {
  return { mustBe, parse, isRequired: true }
}

function optional<Value>(
  mustBe: string,
  parse: Variable<Value>['parse'],
): Variable<Value | undefined> {
  return { mustBe, parse, isRequired: false }
}

function withDefault<Value>(
  value: Value,
  mustBe: string,
  parse: Variable<Value>['parse'],
): Variable<Value> {
  return { mustBe, parse, isRequired: false, default: value }
}

const VARIABLES = {
  DATABASE_URL: required(
    'an address like postgres://user:password@host:5432/database, several hosts separated by commas',
    parseDatabaseUrl,
  ),
  DATABASE_POOL_MAX: wholeNumber('a whole number of connections', 1, 1000, 10),
  DATABASE_PREPARE: choice('true', 'false'),

  JWT_SECRET: required('a secret of at least 32 characters', parseSecret),
  JWT_SECRET_PREVIOUS: optional('a secret of at least 32 characters', parseSecret),
  CAPTCHA_SECRET: required("the site's secret for the captcha verification", String),
  CAPTCHA_VERIFY_URL: withDefault(
    'https://www.google.com/recaptcha/api/siteverify',
    'an http(s) address',
    (text) => parseUrl(text, 'http:', 'https:')?.href,
  ),
  CLOUDINARY_URL: required(
    'an address like cloudinary://KEY:SECRET@CLOUD; an upload_prefix in it is an http(s) address',
    parseCloudinaryUrl,
  ),

  HOST: withDefault('0.0.0.0', 'an address or host name to listen on', String),
  PORT: wholeNumber('a whole number', 0, 65_535, 3000),
  TRUST_PROXY: list(
    'a comma-separated list of addresses and ranges like loopback, uniquelocal, 10.0.0.0/8' +
      ' (not true and not a hop count: name the proxies instead)',
    isProxyRange,
  ),
  CORS_ORIGIN: list('a comma-separated list of origins like https://admin.example.com', isOrigin),
  BODY_LIMIT_MIB: wholeNumber('a whole number of MiB', 1, 256, 10),
  LOGIN_RATE_LIMIT: wholeNumber('a whole number of login attempts a minute', 0, 1_000_000, 30),
  AUTHORIZATION: choice('enforced', 'client'),

  ADMIN_USERNAME: text('a user name of at most 255 characters, all of them visible', [
    ...textConstraints(MAX_TEXT),
    isVisible,
  ]),
  ADMIN_PASSWORD: text('a password of at most 72 bytes', [
    isStorable,
    hasAtMostBytes(MAX_PASSWORD_BYTES),
  ]),
  ADMIN_EMAIL: text('an email address', [...textConstraints(MAX_TEXT), isEmail]),

  LOG_LEVEL: choice('info', 'fatal', 'error', 'warn', 'audit', 'debug', 'trace', 'silent'),
  METRICS: choice('false', 'true'),
  DOCS: choice('true', 'false'),
}

/** Either all or none of these variables are set. */
const ADMIN_VARIABLES = ['ADMIN_USERNAME', 'ADMIN_PASSWORD', 'ADMIN_EMAIL']

type Variables = typeof VARIABLES

/** The values of all variables, by name. */
export type Config = {
  [Name in keyof Variables]: Variables[Name] extends Variable<infer Value> ? Value : never
}

/**
 * Returns the configuration from environment variables. An empty variable counts as not set. Throws a
 * ConfigError that names every invalid variable and its requirement. It quotes no values, because they
 * may be secrets.
 */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const problems: string[] = []
  const values: Record<string, unknown> = {}
  const variables: [string, Variable<unknown>][] = Object.entries(VARIABLES)

  for (const [name, variable] of variables) {
    const text = env[name]
    if (text) {
      values[name] = variable.parse(text)
      if (values[name] === undefined) problems.push(`${name} must be ${variable.mustBe}`)
    } else {
      values[name] = variable.default
      if (variable.isRequired) problems.push(`${name} is missing: it must be ${variable.mustBe}`)
    }
  }
  problems.push(...missingAdminVariables(env))
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return values as Config
}

function missingAdminVariables(env: Record<string, string | undefined>) {
  const missing = ADMIN_VARIABLES.filter((name) => !env[name])
  if (missing.length === ADMIN_VARIABLES.length) return []
  const together = `${ADMIN_VARIABLES.join(', ')} go together`
  return missing.map((name) => `${name} is missing: ${together}`)
}

function wholeNumber(mustBe: string, min: number, max: number, preset: number) {
  return withDefault(preset, `${mustBe} from ${min} to ${max}`, (text) => {
    const number = Number(text)
    return /^\d+$/.test(text) && number >= min && number <= max ? number : undefined
  })
}

function choice<const Choice extends string>(preset: Choice, ...others: Choice[]) {
  const choices = [preset, ...others]
  return withDefault(preset, `one of ${choices.join(', ')}`, (text) =>
    choices.find((choice) => choice === text),
  )
}

function list(mustBe: string, isItem: (item: string) => boolean) {
  return withDefault<string[]>([], mustBe, (text) => {
    const items = text.split(',').map((item) => item.trim())
    return items.every(isItem) ? items : undefined
  })
}

function text(mustBe: string, constraints: Constraint[]) {
  return optional(mustBe, (value) =>
    brokenConstraint(constraints, value) === undefined ? value : undefined,
  )
}

function parseSecret(text: string) {
  return text.length >= 32 ? text : undefined
}

function parseUrl(text: string, ...protocols: string[]) {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url && protocols.includes(url.protocol) ? url : undefined
}

function isOrigin(item: string) {
  return parseUrl(item, 'http:', 'https:')?.origin === item
}

function isProxyRange(item: string) {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(item)) return true
  const [address = '', prefixLength, ...rest] = item.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  if (prefixLength === undefined) return true
  const maxLength = version === 4 ? 32 : 128
  return /^[1-9]\d*$/.test(prefixLength) && Number(prefixLength) <= maxLength
}

/** Returns the account, and the address of the API as `uploadPrefix` if the text has its own one. */
function parseCloudinaryUrl(text: string) {
  // Cloudinary's SDK reads the variable as well, and does not accept white space before the scheme.
  const url = text.startsWith('cloudinary://') ? parseUrl(text, 'cloudinary:') : undefined
  if (!url?.hostname || !url.username || !url.password) return undefined
  const uploadPrefix = url.searchParams.get('upload_prefix') ?? undefined
  if (uploadPrefix !== undefined && !parseUrl(uploadPrefix, 'http:', 'https:')) {
    return undefined
  }
  return {
    cloudName: url.hostname,
    apiKey: url.username,
    apiSecret: url.password,
    uploadPrefix,
  }
}

/** Returns the address with only the first host, the database's name, all hosts and the TLS mode. */
function parseDatabaseUrl(text: string) {
  const parts = /^(postgres(?:ql)?:\/\/(?:[^/?#\s]*@)?)([^/?#@\s]+)([/?]\S*)?$/.exec(text)
  // `head` is the scheme and the credentials, `tail` the name of the database and the parameters.
  const [, head = '', hosts = '', tail = ''] = parts ?? []
  const [scheme = ''] = head.split('/')
  const urls = hosts.split(',').map((host) => parseUrl(`${head}${host}${tail}`, scheme))
  const [url] = urls
  if (!url || !urls.every((each) => each?.hostname)) return undefined
  const database = decode(url.pathname.slice(1))
  const isDecodable = [decode(url.username), decode(url.password), database].every(
    (part) => part !== undefined,
  )
  if (!isDecodable || database === undefined) return undefined

  const tls = parseSslMode(url.searchParams.get('sslmode') ?? url.searchParams.get('ssl'))
  if (!tls) return undefined
  // The service itself starts TLS and finds the primary. The driver must not do it as well.
  for (const name of ['target_session_attrs', 'sslmode', 'ssl']) {
    url.searchParams.delete(name)
  }
  return {
    url: url.href,
    database,
    tls,
    hosts: urls.map((each) => ({
      host: each?.hostname.replace(/^\[|\]$/g, '') ?? '',
      port: Number(each?.port || 5432),
    })),
  }
}

/** Returns the text without its percent-encoding, or undefined if the encoding is malformed. */
function decode(text: string) {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * Returns how the service uses TLS for a value of PostgreSQL's `sslmode`: `verified` checks the
 * certificate and the host's name in it, `unverified` only encrypts, and `preferred` encrypts if the
 * server supports it. Each value is at least as strict as in PostgreSQL's own clients. Without
 * `sslmode` there is no TLS. Returns undefined for an unknown value.
 */
function parseSslMode(sslmode: string | null) {
  switch (sslmode) {
    case null:
    case 'disable':
    case 'false':
      return 'off'
    case 'prefer':
      return 'preferred'
    case 'allow':
    case 'require':
      return 'unverified'
    case 'true':
    case 'verify-ca':
    case 'verify-full':
      return 'verified'
    default:
      return undefined
  }
}
