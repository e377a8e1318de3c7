import { Agent, request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import type { AnswerWithHeaders } from '../answers.js'
import type { Operation, Parameter } from './document.js'
import { faulty, hostile, textOf, valid } from './values.js'
import { type Caller, TOKENS } from './world.js'

export type Request = ReturnType<typeof requestsFor> extends fc.Arbitrary<infer T> ? T : never

/** Returns a generator of requests for an operation, valid ones and ones with errors. */
export function requestsFor(operation: Operation) {
  const usualType = operation.body ? 'application/json' : undefined
  return fc
    .record({
      method: fc.constantFrom(...operation.methods),
      path: pathsOf(operation),
      query: queriesOf(operation),
      caller: callers,
      type: mostly<string | undefined>(usualType, fc.constantFrom(undefined, ...TYPES)),
      strange: mostly<Record<string, string>>({}, fc.constantFrom(...HEADERS)),
      body: bodiesOf(operation),
    })
    .map(({ path, query, type, strange, ...rest }) => ({
      ...rest,
      operation,
      url: path + query,
      headers: type === undefined ? strange : { 'content-type': type, ...strange },
    }))
}

const mostly = <T>(usual: T, strange: fc.Arbitrary<T>) =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 9 }, { arbitrary: strange, weight: 1 })

const callers: fc.Arbitrary<Caller> = fc.oneof(
  { arbitrary: fc.constant<Caller>('administrator'), weight: 7 },
  { arbitrary: fc.constant<Caller>('limited'), weight: 2 },
  { arbitrary: fc.constantFrom(...(Object.keys(TOKENS) as Caller[])), weight: 1 },
)

const TYPES = [
  '',
  ';',
  'json',
  'text/plain',
  '\xff/\xff',
  'APPLICATION/JSON',
  'application/json; charset=utf-8',
  'application/json; charset=utf-16',
  'application/json, text/plain',
  'application/vnd.api+json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
]

const HEADERS: Record<string, string>[] = [
  { 'content-encoding': 'gzip' },
  { 'transfer-encoding': 'chunked' },
  { expect: '100-continue' },
  { connection: 'upgrade', upgrade: 'websocket' },
  { 'sec-fetch-site': 'cross-site', origin: 'https://otro.example' },
  { 'x-http-method-override': 'DELETE', 'x-request-id': 'x'.repeat(9000) },
  { 'x-forwarded-for': "' or 1=1", 'x-forwarded-host': '\xff', host: '\xff:99999' },
  { 'if-none-match': '*, "x', range: 'bytes=9-' },
  { 'accept-version': '9.x', accept: 'text/html', 'accept-encoding': 'x' },
  { cookie: 'auth_token=%E0%A4%A; auth_token; =; auth_token=" ' },
  { authorization: 'Bearer ' },
  { authorization: 'Basic YWRtaW46YWRtaW4=' },
]

function pathsOf({ path, parameters }: Operation) {
  const texts = parameters.filter((parameter) => parameter.in === 'path').map(textsOf)
  return fc.tuple(...texts).map((texts) => {
    const segments = texts.values()
    // An empty segment would change the route.
    return path.replace(/{\w+}/g, () => segments.next().value || '%20')
  })
}

function queriesOf({ parameters }: Operation) {
  const pairs = parameters
    .filter((parameter) => parameter.in === 'query')
    .map((parameter) => {
      const { name } = parameter
      const names = mostly(
        name,
        fc.constantFrom(`${name}[]`, `${name}[x]`, `%${name}`, '__proto__'),
      )
      return fc.tuple(names, textsOf(parameter)).map(([name, text]) => `${name}=${text}`)
    })
  if (pairs.length === 0) return mostly('', fc.constantFrom('?', '?x=%&=&&'))
  const some = fc.array(fc.oneof(...pairs), { maxLength: 3 })
  const all = fc.tuple(...pairs)
  return fc.oneof(some, all).map((pairs) => `?${pairs.join('&')}`)
}

/** Returns a generator of texts for a parameter, most of them correctly percent-encoded. */
const textsOf = ({ schema }: Parameter) =>
  fc.oneof(
    { arbitrary: valid(schema).map(textOf).map(encode), weight: 8 },
    { arbitrary: hostile.map(textOf).map(encode), weight: 2 },
    fc.constantFrom('%', '%zz', '%00', '%c0%80', '%ed%a0%80', '..', '%2e%2e%2f', '+', ';=:@'),
  )

/** Cuts and encodes a text: a head may have 16 KiB, and lone surrogates have no encoding. */
const encode = (text: string) =>
  encodeURIComponent(text.slice(0, 2000).replace(/\p{Cs}/gu, '\ufffd'))

function bodiesOf({ body: schema }: Operation): fc.Arbitrary<string | undefined> {
  const none = fc.constant(undefined)
  if (!schema) return mostly<string | undefined>(undefined, hostile)
  const cut = fc.tuple(valid(schema), fc.nat(60)).map(([text, end]) => text.slice(0, end))
  return fc.oneof(
    { arbitrary: valid(schema), weight: 24 },
    { arbitrary: faulty(schema), weight: 10 },
    ...[none, hostile, cut],
    fc.constantFrom('', ' ', '\ufeff{}', '\xff', 'x=1&y=2', '\x1f\x8b\x08', '"'.padEnd(1_100_000)),
  )
}

/** How long an answer may take, in milliseconds. */
const TIME_LIMIT = 3000
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** Sends a request byte for byte; throws when the answer takes longer than TIME_LIMIT. */
export function send(address: string, { method, url, caller, body, ...request }: Request) {
  const headers: Record<string, string> = { ...request.headers }
  const token = TOKENS[caller]
  if (token !== undefined) headers.cookie ??= `auth_token=${token}`
  const bytes = Buffer.from(body ?? '')
  if (body !== undefined && !headers['transfer-encoding']) {
    headers['content-length'] = String(bytes.length)
  }
  // The path is sent as it is, because the URL parser would normalize it.
  const { hostname, port } = new URL(address)
  return new Promise<AnswerWithHeaders<string>>((resolve, reject) => {
    const sent = httpRequest({ agent, hostname, port, method, path: url, headers })
    sent.setTimeout(TIME_LIMIT, () => sent.destroy(new Error('no answer in time')))
    sent.on('error', reject)
    sent.on('response', async (response) => {
      const { statusCode: status = 0, headers } = response
      resolve({ status, headers, body: await text(response) })
    })
    sent.end(bytes)
  })
}
