import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { AnswerWithHeaders } from './answers.js'
import { testApp } from './app.js'
import { type Operation, operationsOf, unroutedOf } from './hostile/document.js'
import { type Request, requestsFor, send } from './hostile/requests.js'
import { fillWorld, SESSIONS } from './hostile/world.js'

/** How many requests to send, at least, and the seed that repeats a run. */
const REQUESTS = Number(process.env.PROPERTY_REQUESTS || 3000)
const SEED = Number(process.env.PROPERTY_SEED || Date.now() % 2 ** 31)
/** The most requests that follow one another on the same rows; half as many on average. */
const SEQUENCE = 10
/** What no log may show: a hash, a token, a password that is an example, an image. */
const SECRET = /\$2[aby]\$|eyJhbGciOi|una clave larga|iVBORw0KGgo/

let test: Awaited<ReturnType<typeof testApp>>
let world: Awaited<ReturnType<typeof fillWorld>>
let address: string
let declared: Operation[]
let unrouted: Operation[]
let operations: Map<string, Operation>

beforeAll(async () => {
  test = await testApp({ BODY_LIMIT_MIB: '1' })
  world = await fillWorld(test.app, test.config.DATABASE_URL.url)
  address = await test.app.listen({ host: '127.0.0.1', port: 0 })
  const { body: document } = await test.call('GET', '/docs/json')
  declared = operationsOf(document)
  unrouted = unroutedOf(document)
  operations = new Map([...declared, ...unrouted].map((operation) => [operation.name, operation]))
})

let sent = 0
/** What has been answered, by operation. */
const seen = new Map<string, Set<'done' | 'refused'>>()
let changes = 0
let logRead = 0

/**
 * Sends the requests one after the other, on the rows of the beginning; throws at the first fault.
 */
async function answerAll(requests: Request[]) {
  await world.restore()
  const lines = []
  for (const request of requests) {
    const answer = await send(address, request)
    lines.push(`${short(request)}\n→ ${answer.status} ${answer.body.slice(0, 500)}`)
    const before = changes
    changes = await world.changes()
    const fault = faultOf(request, answer, changes > before)
    if (fault) throw new Error([fault, ...lines].join('\n'))
  }
  const logged = faultInLog()
  if (logged) throw new Error([logged, ...lines].join('\n'))
}

/** What is wrong with the answer; undefined where nothing is. */
function faultOf(
  { operation, method, caller }: Request,
  answer: AnswerWithHeaders<string>,
  changed: boolean,
) {
  const { status, headers, body } = answer
  const value = parse(body)
  const refused = status >= 400 || value?.success === false
  sent += 1
  seen.set(operation, (seen.get(operation) ?? new Set()).add(refused ? 'refused' : 'done'))

  const { answers, isPublic } = operations.get(operation) as Operation
  const check = answers.get(status)
  if (!check) return 'the status is not declared'
  if (method === 'HEAD' || status === 304) {
    if (body !== '') return 'a body where none may be'
  } else {
    if (!check(value)) return `the body is not as declared: ${JSON.stringify(check.errors)}`
    if (value.statusCode !== undefined && value.statusCode !== status) return 'another statusCode'
    if (headers['content-type'] !== 'application/json; charset=utf-8') return 'not JSON'
  }
  if (!refused && !isPublic && !SESSIONS.includes(caller)) return 'done for nobody'
  if (!headers['x-request-id']) return 'no x-request-id'
  if (changed && (refused || ['GET', 'HEAD'].includes(method))) return 'rows have changed'
}

/** The line of the log, if there is one, that tells of a fault of the service's own or a secret. */
function faultInLog() {
  const log = test.readLog().slice(logRead)
  logRead += log.length
  return log.split('\n').find((line) => {
    if (line === '') return false
    // Paths and names are logged as they are, and may be anything here.
    const { path: _, who: __, ...rest } = JSON.parse(line)
    return rest.msg === 'unexpected failure' || SECRET.test(JSON.stringify(rest))
  })
}

function parse(body: string) {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** As JSON, long texts cut. */
const short = (value: unknown) =>
  JSON.stringify(value, (_key, value) =>
    typeof value === 'string' && value.length > 600
      ? `${value.slice(0, 600)}… (${value.length})`
      : value,
  )

/** A request that hashes a password costs as much as thirty others: half as many of those. */
const weightOf = ({ body }: Operation) => (JSON.stringify(body)?.includes('"password"') ? 1 : 2)

describe('whatever is sent', () => {
  it('is answered as the document declares, and changes nothing where it is refused', async () => {
    console.log(`PROPERTY_SEED=${SEED} PROPERTY_REQUESTS=${REQUESTS}`)
    const requests = fc.oneof(
      ...declared.map((one) => ({ arbitrary: requestsFor(one), weight: 10 * weightOf(one) })),
      ...unrouted.map((one) => ({ arbitrary: requestsFor(one), weight: 1 })),
    )
    const sequences = fc.array(requests, { minLength: 1, maxLength: SEQUENCE, size: 'max' })
    const property = fc.asyncProperty(sequences, answerAll)
    const run = await fc.check(property, {
      seed: SEED,
      numRuns: Math.ceil((2 * REQUESTS) / SEQUENCE),
      unbiased: true,
    })
    if (run.failed) throw new Error(`PROPERTY_SEED=${SEED}`, { cause: run.errorInstance })
    console.log(`${sent} requests`)
    expect(sent).toBeGreaterThanOrEqual(REQUESTS)
  }, 600_000)

  it('has reached every operation, both done and refused', () => {
    const unreached = declared.filter(({ name }) => seen.get(name)?.size !== 2)
    expect(unreached.map(({ name }) => name)).toEqual([])
  })
})
