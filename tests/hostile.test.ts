import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { AnswerWithHeaders } from './answers.js'
import { testApp } from './app.js'
import { type Operation, operationsOf } from './hostile/document.js'
import { type Request, requestsFor, send } from './hostile/requests.js'
import { fillWorld, SESSIONS } from './hostile/world.js'

/** About how many requests a run sends. Chance decides the number. */
const REQUESTS = Number(process.env.PROPERTY_REQUESTS || 1000)
/** The seed of the arbitrary requests: the same one, unless the environment has another. */
const SEED = Number(process.env.PROPERTY_SEED || 1)
/** The most requests that are sent before the rows are restored; half as many on average. */
const SEQUENCE = 10

let service: Awaited<ReturnType<typeof testApp>>
let world: Awaited<ReturnType<typeof fillWorld>>
let address: string
let operations: Operation[]

beforeAll(async () => {
  service = await testApp({ BODY_LIMIT_MIB: '1' })
  world = await fillWorld(service)
  address = await service.app.listen({ host: '127.0.0.1', port: 0 })
  const { body: document } = await service.call('GET', '/docs/json')
  operations = operationsOf(document)
})

/** For each operation, whether requests have succeeded and been refused so far. */
const seen = new Map<string, Set<'done' | 'refused'>>()
let logRead = 0

/**
 * Restores the rows and sends the requests one after the other; throws at the first wrong answer.
 */
async function answerAll(requests: Request[]) {
  await world.restore()
  let changes = await world.changes()
  const lines = []
  for (const request of requests) {
    const answer = await send(address, request)
    const { operation, ...sent } = request
    lines.push(
      JSON.stringify(sent).slice(0, 3000),
      `→ ${answer.status} ${answer.body.slice(0, 500)}`,
    )
    const before = changes
    changes = await world.changes()
    recordOutcome(request, answer)
    const violation = violationOf(request, answer, changes !== before)
    if (violation) throw new Error([violation, ...lines].join('\n'))
  }
  const log = service.readLog().slice(logRead)
  logRead += log.length
  if (log.includes('unexpected failure')) throw new Error([log, ...lines].join('\n'))
}

function isRefused({ status, body }: AnswerWithHeaders<string>) {
  return status >= 400 || parse(body)?.success === false
}

function recordOutcome({ operation }: Request, answer: AnswerWithHeaders<string>) {
  const outcomes = seen.get(operation.name) ?? new Set()
  outcomes.add(isRefused(answer) ? 'refused' : 'done')
  seen.set(operation.name, outcomes)
}

/** Returns the first rule that an answer violates, or undefined when it violates none. */
function violationOf(
  { operation, method, caller }: Request,
  answer: AnswerWithHeaders<string>,
  changed: boolean,
) {
  const { status, headers, body } = answer
  const refused = isRefused(answer)
  const check = operation.answers.get(status)
  if (!check) return 'the status is not declared'
  if (method === 'HEAD' || status === 304) {
    if (body !== '') return 'the answer must not have a body'
  } else {
    if (!check(parse(body))) return `the body is not as declared: ${JSON.stringify(check.errors)}`
    if (headers['content-type'] !== 'application/json; charset=utf-8') {
      return 'the content type is not JSON'
    }
  }
  if (!refused && !operation.isPublic && !SESSIONS.includes(caller)) {
    return 'a request without a session succeeded'
  }
  if (changed && (refused || ['GET', 'HEAD'].includes(method))) {
    return 'rows have changed, although the request was refused or only reads'
  }
}

function parse(body: string) {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

describe('an arbitrary request', () => {
  it('is answered as the OpenAPI document declares, and changes no row when it is refused', async () => {
    console.log(`PROPERTY_SEED=${SEED} PROPERTY_REQUESTS=${REQUESTS}`)
    const requests = fc.oneof(...operations.map(requestsFor))
    const sequences = fc.array(requests, { minLength: 1, maxLength: SEQUENCE, size: 'max' })
    const property = fc.asyncProperty(sequences, answerAll)
    const run = await fc.check(property, {
      seed: SEED,
      numRuns: Math.ceil((2 * REQUESTS) / SEQUENCE),
      unbiased: true,
    })
    if (run.failed) throw new Error(`PROPERTY_SEED=${SEED}`, { cause: run.errorInstance })
  }, 600_000)

  it('has succeeded and has been refused at every operation', () => {
    const unreached = operations.filter(({ name }) => seen.get(name)?.size !== 2)
    expect(unreached.map(({ name }) => name)).toEqual([])
  })
})
