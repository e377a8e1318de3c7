import { isIP } from 'node:net'
import { compile } from '@fastify/proxy-addr'
import { fitsBcrypt, isAtMost, isEmail, isVisible } from './texts.js'

/** Thrown for invalid variables. The message has one line for each of them. */
export class ConfigError extends Error {}

/**
 * The environment variables. `mustBe` has the words that follow "must be" in the error message.
 * `parse` returns the value for a text, and throws an error if the text is invalid. `preset` is the
 * text if the variable is not set.
 */
const VARIABLES = {
  DATABASE_URL: {
    mustBe:
      'an address like postgres://user:password@host:5432/database; several hosts are separated by commas',
    parse: parseDatabaseUrl,
    preset: undefined,
  },
  DATABASE_POOL_MAX: wholeNumber('a whole number of connections', 1, 1000, 10),
  DATABASE_PREPARE: choice('true', 'false'),

  JWT_SECRET: text('a secret of at least 32 characters', isSecret),
  JWT_SECRET_PREVIOUS: text('a secret of at least 32 characters', isSecret, ''),
  CAPTCHA_SECRET: text("the site's secret for the captcha verification", Boolean),
  CAPTCHA_VERIFY_URL: text(
    'an http(s) address without credentials',
    isWebAddress,
    'https://www.google.com/recaptcha/api/siteverify',
  ),
  CLOUDINARY_URL: {
    mustBe:
      'an address like cloudinary://KEY:SECRET@CLOUD; an upload_prefix in it is an http(s) address' +
      ' without credentials',
    parse: parseCloudinaryUrl,
    preset: undefined,
  },

  HOST: text('an address or host name to listen on', isVisible, '0.0.0.0'),
  PORT: wholeNumber('a whole number', 0, 65_535, 3000),
  TRUST_PROXY: list(
    'a comma-separated list of addresses and ranges like loopback, uniquelocal, 10.0.0.0/8' +
      ' (not true and not a hop count: name the proxies instead)',
    isProxyRange,
  ),
  CORS_ORIGIN: list('a comma-separated list of origins like https://admin.example.com', isOrigin),
  BODY_LIMIT_MIB: wholeNumber('a whole number of MiB', 1, 256, 10),
  LOGIN_RATE_LIMIT: wholeNumber('a whole number of password attempts a minute', 0, 1_000_000, 30),
  AUTHORIZATION: choice('enforced', 'client'),

  ADMIN_USERNAME: text(
    'a user name of at most 255 characters, all of them visible',
    (name) => isAtMost(255, name) && isVisible(name),
    '',
  ),
  ADMIN_PASSWORD: text('a password of at most 72 bytes', fitsBcrypt, ''),
  ADMIN_EMAIL: text('an email address', (email) => isAtMost(255, email) && isEmail(email), ''),

  LOG_LEVEL: choice('info', 'fatal', 'error', 'warn', 'audit', 'debug', 'trace', 'silent'),
  METRICS: choice('false', 'true'),
  DOCS: choice('true', 'false'),
}

/** These variables must be set together: either all of them or none. */
const ADMIN_VARIABLES = ['ADMIN_USERNAME', 'ADMIN_PASSWORD', 'ADMIN_EMAIL']

/**
 * The values of all variables, by name. An optional variable that is not set and has no default is
 * an empty text or an empty list.
 */
export type Config = {
  [Name in keyof typeof VARIABLES]: ReturnType<(typeof VARIABLES)[Name]['parse']>
}

/**
 * Returns the configuration from environment variables. An empty variable counts as not set. Throws
 * a ConfigError that names every invalid variable and its requirement. It quotes no values, because
 * they may be secrets.
 */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const problems: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, { mustBe, parse, preset }] of Object.entries(VARIABLES)) {
    const raw = env[name] || preset || ''
    try {
      values[name] = parse(raw)
    } catch {
      const problem = raw ? 'must be' : 'is missing: it must be'
      problems.push(`${name} ${problem} ${mustBe}`)
    }
  }

  const missing = ADMIN_VARIABLES.filter((name) => !env[name])
  if (missing.length < ADMIN_VARIABLES.length) {
    const together = `${ADMIN_VARIABLES.join(', ')} go together`
    problems.push(...missing.map((name) => `${name} is missing: ${together}`))
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return values as Config
}

/** Throws an error without a message unless `isValid` is true. */
function check(isValid: unknown): asserts isValid {
  if (!isValid) throw new Error()
}

type IsValid = (value: string) => boolean

/** A text. Without `preset`, the variable is required. */
function text<Text extends string>(mustBe: string, isValid: IsValid, preset?: string) {
  const parse = (value: string) => {
    // A variable that is not set has its preset, which need not satisfy `isValid`.
    check(value === preset || isValid(value))
    return value as Text
  }
  return { mustBe, parse, preset }
}

function wholeNumber(unit: string, min: number, max: number, preset: number) {
  const parse = (value: string) => {
    const number = Number(value)
    check(/^\d+$/.test(value) && number >= min && number <= max)
    return number
  }
  return { mustBe: `${unit} from ${min} to ${max}`, parse, preset: String(preset) }
}

/** One of several words. The first one is the default. */
function choice<Choice extends string>(...choices: Choice[]) {
  const mustBe = `one of ${choices.join(', ')}`
  return text<Choice>(mustBe, (value) => choices.some((choice) => choice === value), choices[0])
}

/** Items that are separated by commas. The variable need not be set. */
function list(mustBe: string, isItem: IsValid) {
  const parse = (value: string) => {
    const items = value ? value.split(',').map((item) => item.trim()) : []
    check(items.every(isItem))
    return items
  }
  return { mustBe, parse, preset: '' }
}

function isSecret(value: string) {
  return value.length >= 32
}

function isWebAddress(value: string) {
  // The log quotes the address in errors, so there must be no credentials before its host.
  return /^https?:\/\/[^@/]*\//.test(new URL(value).href)
}

function isOrigin(item: string) {
  return isWebAddress(item) && new URL(item).origin === item
}

function isProxyRange(item: string) {
  // The library also accepts the short, octal and hexadecimal forms of IPv4 addresses.
  const isComplete = /^[a-z]+$/.test(item) || isIP(item.replace(/\/.*/, ''))
  return Boolean(isComplete && compile(item))
}

/** Returns the Cloudinary account that the text contains, as options of Cloudinary's SDK. */
function parseCloudinaryUrl(text: string) {
  check(/^cloudinary:\/\/[^:@]+:[^:@]+@[^/?]/.test(text))
  const { hostname, username, password, searchParams } = new URL(text)
  const prefix = searchParams.get('upload_prefix')
  check(prefix === null || isWebAddress(prefix))
  return {
    cloud_name: hostname,
    api_key: username,
    api_secret: password,
    // The SDK ignores undefined, but would use null as the address.
    upload_prefix: prefix ?? undefined,
  }
}

/**
 * The values of `sslmode` (docs/configuration.md), and those of `ssl`, which other drivers use
 * instead.
 */
const TLS_MODE = /^(disable|false|prefer|allow|require|true|verify-ca|verify-full)$/

/**
 * Matches the address of a database, which may have several hosts. The groups are the scheme with
 * the credentials, the hosts, and the name of the database with the parameters.
 */
const DATABASE_ADDRESS =
  /^(postgres(?:ql)?:\/\/(?:[^/?#\s]*@)?)([^/?#@\s,]+(?:,[^/?#@\s,]+)*)([/?]\S*)?$/

/**
 * Returns the hosts, the name of the database, and whether the host's certificate is checked. `url`
 * is the address for the driver, with only the first host and with the TLS mode.
 */
function parseDatabaseUrl(text: string) {
  const [, head = '', hosts = '', tail = ''] = DATABASE_ADDRESS.exec(text) ?? []
  const urls = hosts.split(',').map((host) => new URL(`${head}${host}${tail}`))
  const [url] = urls
  check(url)
  // Throws an error if the encoding of the credentials is malformed. The driver decodes them later.
  decodeURIComponent(head)

  const { searchParams, pathname } = url
  const mode = searchParams.get('sslmode') ?? searchParams.get('ssl') ?? 'disable'
  check(TLS_MODE.test(mode))
  searchParams.set('sslmode', mode)
  return {
    url: url.href,
    database: decodeURIComponent(pathname.slice(1)),
    isVerified: /^(true|verify)/.test(mode),
    hosts: urls.map(({ hostname, port }) => ({
      // In the hostname of a URL, an IPv6 address is enclosed in brackets.
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || 5432),
    })),
  }
}
