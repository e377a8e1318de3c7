import { isIP } from 'node:net'
import {
  hasAtMost,
  hasAtMostBytes,
  isEmail,
  isStorable,
  isVisible,
  MAX_PASSWORD_BYTES,
  MAX_TEXT,
} from './texts.js'

/** Thrown by loadConfig. The message has one line for each invalid variable. */
export class ConfigError extends Error {}

/** Returns the value for the text of a variable. Returns undefined or throws if the text is invalid. */
type Parse<Value> = (text: string) => Value | undefined

/** The rules for the value of one environment variable. */
interface Variable<Value> {
  /** What the text must be: the words that follow "must be" in the error message. */
  mustBe: string
  parse: Parse<Value>
  isRequired: boolean
  /** The value if the variable is not set. */
  default?: Value
}

/** Environment variables, by name. */
type Environment = Record<string, string | undefined>

function required<Value>(mustBe: string, parse: Parse<Value>): Variable<Value> {
  return { mustBe, parse, isRequired: true }
}

function withDefault<Value>(value: Value, mustBe: string, parse: Parse<Value>): Variable<Value> {
  return { mustBe, parse, isRequired: false, default: value }
}

const VARIABLES = {
  DATABASE_URL: required(
    'an address like postgres://user:password@host:5432/database; several hosts are separated by commas',
    parseDatabaseUrl,
  ),
  DATABASE_POOL_MAX: wholeNumber('a whole number of connections', 1, 1000, 10),
  DATABASE_PREPARE: choice('true', 'false'),

  JWT_SECRET: required('a secret of at least 32 characters', (text) =>
    isSecret(text) ? text : undefined,
  ),
  JWT_SECRET_PREVIOUS: optionalText('a secret of at least 32 characters', isSecret),
  CAPTCHA_SECRET: required("the site's secret for the captcha verification", String),
  CAPTCHA_VERIFY_URL: withDefault(
    'https://www.google.com/recaptcha/api/siteverify',
    'an http(s) address',
    (text) => parseWebAddress(text)?.href,
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

  ADMIN_USERNAME: optionalText(
    'a user name of at most 255 characters, all of them visible',
    (text) => hasAtMost(MAX_TEXT, text) && isVisible(text),
  ),
  ADMIN_PASSWORD: optionalText(
    'a password of at most 72 bytes',
    (text) => hasAtMostBytes(MAX_PASSWORD_BYTES, text) && isStorable(text),
  ),
  ADMIN_EMAIL: optionalText(
    'an email address',
    (text) => hasAtMost(MAX_TEXT, text) && isEmail(text),
  ),

  LOG_LEVEL: choice('info', 'fatal', 'error', 'warn', 'audit', 'debug', 'trace', 'silent'),
  METRICS: choice('false', 'true'),
  DOCS: choice('true', 'false'),
}

/** These variables must be set together: either all of them or none. */
const ADMIN_VARIABLES = ['ADMIN_USERNAME', 'ADMIN_PASSWORD', 'ADMIN_EMAIL']

/** The values of all variables, by name. */
export type Config = {
  [Name in keyof typeof VARIABLES]: (typeof VARIABLES)[Name] extends Variable<infer Value>
    ? Value
    : never
}

/**
 * Returns the configuration from environment variables. An empty variable counts as not set. Throws a
 * ConfigError that names every invalid variable and its requirement. It quotes no values, because they
 * may be secrets.
 */
export function loadConfig(env: Environment): Config {
  const problems: string[] = []
  const values: Record<string, unknown> = {}
  const variables: [string, Variable<unknown>][] = Object.entries(VARIABLES)

  for (const [name, variable] of variables) {
    const { mustBe, isRequired } = variable
    const text = env[name]
    const value = text ? parseOrUndefined(variable, text) : variable.default
    values[name] = value
    if (text && value === undefined) problems.push(`${name} must be ${mustBe}`)
    if (!text && isRequired) problems.push(`${name} is missing: it must be ${mustBe}`)
  }
  problems.push(...missingAdminVariables(env))

  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return values as Config
}

/** Returns the value for the text of a variable, or undefined if the text is invalid. */
function parseOrUndefined<Value>({ parse }: Variable<Value>, text: string) {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

/** Returns a problem for each missing variable in ADMIN_VARIABLES, unless all of them are missing. */
function missingAdminVariables(env: Environment) {
  const missing = ADMIN_VARIABLES.filter((name) => !env[name])
  if (missing.length === ADMIN_VARIABLES.length) return []
  const together = `${ADMIN_VARIABLES.join(', ')} go together`
  return missing.map((name) => `${name} is missing: ${together}`)
}

function wholeNumber(mustBe: string, min: number, max: number, preset: number) {
  return withDefault(preset, `${mustBe} from ${min} to ${max}`, (text) => {
    const number = Number(text)
    const isInRange = number >= min && number <= max
    return /^\d+$/.test(text) && isInRange ? number : undefined
  })
}

function choice<const Choice extends string>(preset: Choice, ...others: Choice[]) {
  const choices = [preset, ...others]
  const mustBe = `one of ${choices.join(', ')}`
  return withDefault(preset, mustBe, (text) => {
    return choices.find((choice) => choice === text)
  })
}

function list(mustBe: string, isItem: (item: string) => boolean) {
  return withDefault<string[]>([], mustBe, (text) => {
    const items = text.split(',').map((item) => item.trim())
    return items.every(isItem) ? items : undefined
  })
}

function optionalText(mustBe: string, isValid: (text: string) => boolean) {
  return withDefault<string | undefined>(undefined, mustBe, (text) => {
    return isValid(text) ? text : undefined
  })
}

function isSecret(text: string) {
  return text.length >= 32
}

/** Returns the URL if it has one of the protocols. Throws if the text is not a URL. */
function parseUrl(text: string, ...protocols: string[]) {
  const url = new URL(text)
  return protocols.includes(url.protocol) ? url : undefined
}

function parseWebAddress(text: string) {
  return parseUrl(text, 'http:', 'https:')
}

function isOrigin(item: string) {
  return parseWebAddress(item)?.origin === item
}

/** Matches an address, and the length of a prefix if there is one. */
const PROXY_RANGE = /^(?<address>[^/]+)(?:\/(?<prefixLength>[1-9]\d*))?$/

function isProxyRange(item: string) {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(item)) return true
  // Fastify accepts no prefix length of 0, as in `0.0.0.0/0`. Such a range would contain every
  // address.
  const { address = '', prefixLength = '1' } = PROXY_RANGE.exec(item)?.groups ?? {}
  const version = isIP(address)
  const maxLength = version === 4 ? 32 : 128
  return version !== 0 && Number(prefixLength) <= maxLength
}

/**
 * Returns the Cloudinary account that the text contains, or undefined if the text is invalid.
 * `uploadPrefix` is the address of Cloudinary's API. It is undefined if the text has none.
 */
function parseCloudinaryUrl(text: string) {
  // Cloudinary's SDK reads the variable as well, and does not accept white space before the scheme.
  if (!text.startsWith('cloudinary://')) return undefined
  const url = parseUrl(text, 'cloudinary:')
  if (!url?.hostname || !url.username || !url.password) return undefined

  const uploadPrefix = url.searchParams.get('upload_prefix') ?? undefined
  if (uploadPrefix !== undefined && !parseWebAddress(uploadPrefix)) return undefined
  return {
    cloudName: url.hostname,
    apiKey: url.username,
    apiSecret: url.password,
    uploadPrefix,
  }
}

/**
 * What the driver gets as `ssl`, for each value of the parameter `sslmode` of PostgreSQL's clients and of
 * the parameter `ssl` of other drivers: `verify-full` checks the certificate and the host's name in it,
 * `require` encrypts without a check, and `prefer` encrypts if the server supports it.
 *
 * PostgreSQL's own clients differ in three values. With `allow` they encrypt only if the server demands
 * it, with `verify-ca` they do not check the name, and with `require` they check the certificate if they
 * find a file of root certificates.
 */
const TLS_MODES = new Map<string, false | 'prefer' | 'require' | 'verify-full'>([
  ['disable', false],
  ['false', false],
  ['prefer', 'prefer'],
  ['allow', 'require'],
  ['require', 'require'],
  ['true', 'verify-full'],
  ['verify-ca', 'verify-full'],
  ['verify-full', 'verify-full'],
])

/**
 * Matches the address of a database, which may have several hosts. `head` captures the scheme and the
 * credentials, and `tail` captures the name of the database and the parameters.
 */
const DATABASE_ADDRESS =
  /^(?<head>postgres(?:ql)?:\/\/(?:[^/?#\s]*@)?)(?<hosts>[^/?#@\s]+)(?<tail>[/?]\S*)?$/

/**
 * Returns the hosts, the name of the database and the TLS mode. `url` is the address that the driver
 * gets. It contains only the first host. Returns undefined or throws if the text is invalid.
 */
function parseDatabaseUrl(text: string) {
  const { head = '', hosts = '', tail = '' } = DATABASE_ADDRESS.exec(text)?.groups ?? {}
  const urls = hosts.split(',').map((host) => new URL(`${head}${host}${tail}`))
  const [url] = urls
  if (!url || urls.some(({ hostname }) => !hostname)) return undefined

  const { searchParams, username, password, pathname } = url
  const tls = TLS_MODES.get(searchParams.get('sslmode') ?? searchParams.get('ssl') ?? 'disable')
  // The driver decodes the credentials later. A malformed encoding is refused here, by an error.
  const credentials = decodeURIComponent(`${username}:${password}`)
  if (tls === undefined || !credentials) return undefined

  // The service passes these on to the driver in a form of its own.
  for (const name of ['target_session_attrs', 'sslmode', 'ssl']) {
    searchParams.delete(name)
  }
  return {
    url: url.href,
    database: decodeURIComponent(pathname.slice(1)),
    tls,
    hosts: urls.map(({ hostname, port }) => ({
      // In the hostname of a URL, an IPv6 address is enclosed in brackets.
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || 5432),
    })),
  }
}
