/**
 * The load generator, which runs as a process of its own: it receives jobs as messages, works on
 * several at a time, and answers each with its result.
 */
import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import autocannon from 'autocannon'

export interface LoadRequest {
  method?: 'GET' | 'POST' | 'PUT'
  path: string
  headers: Record<string, string>
  body?: string
}

interface Target {
  url: string
  requests: LoadRequest[]
  seconds: number
}

export type Job =
  /** Sends as many requests as possible; each connection repeats its own share of `requests`. */
  | ({ kind: 'flood'; connections: number; mayShed?: boolean } & Target)
  /** Sends requests at a fixed rate, whether or not earlier ones have been answered. */
  | ({ kind: 'paced'; perSecond: number } & Target)

export interface Load {
  /** The number of answers with a status 2xx. */
  answered: number
  /** The number of answers with 503, if `mayShed` allows them. */
  shed: number
  /** The number of other answers and of missing ones, and a summary of them. */
  failed: number
  failures: string
  seconds: number
  /** The time of each answer with 2xx, in milliseconds. */
  times: number[]
}

async function flood(job: Extract<Job, { kind: 'flood' }>) {
  const { url, requests, seconds, connections, mayShed = false } = job
  let client = 0
  const times: number[] = []
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const options: autocannon.Options = {
      url,
      connections,
      duration: seconds,
      timeout: 30,
      setupClient: (each) => {
        const own = client % connections
        client += 1
        each.setRequests(requests.filter((_, index) => index % connections === own))
      },
    }
    autocannon(options, (error, result) => (error ? reject(error) : resolve(result))).on(
      'response',
      (_client, status, _bytes, ms) => {
        if (status < 300) times.push(ms)
      },
    )
  })
  const shed = mayShed ? (result.statusCodeStats?.['503']?.count ?? 0) : 0
  return {
    answered: result['2xx'],
    shed,
    failed: result.non2xx + result.errors - shed,
    failures: `${result['4xx']} 4xx, ${result['5xx']} 5xx, ${result.errors} connection errors`,
    seconds: result.duration,
    times,
  }
}

// autocannon is not used here, because with its `overallRate` all connections send at the start of
// each second.
async function paced({ url, requests, seconds, perSecond }: Extract<Job, { kind: 'paced' }>) {
  const agent = new http.Agent({ keepAlive: true })
  const begin = performance.now()
  const results: Promise<number>[] = []
  for (let index = 0; index < seconds * perSecond; index += 1) {
    await sleep(Math.max(0, begin + (index * 1000) / perSecond - performance.now()))
    const request = requests[index % requests.length]
    if (request) results.push(time(url, request, agent))
  }
  const all = await Promise.all(results)
  agent.destroy()
  const times = all.filter((ms) => !Number.isNaN(ms))
  const failed = all.length - times.length
  return { answered: times.length, shed: 0, failed, failures: 'unexpected', seconds, times }
}

/** Sends a request; returns how long the answer took in milliseconds, or NaN unless it was 200. */
function time(url: string, request: LoadRequest, agent: http.Agent) {
  const { method = 'GET', path, headers, body } = request
  return new Promise<number>((done) => {
    const begin = performance.now()
    http
      .request(url + path, { method, headers, agent }, (response) => {
        response.resume().on('close', () => {
          const isDone = response.complete && response.statusCode === 200
          done(isDone ? performance.now() - begin : Number.NaN)
        })
      })
      .on('error', () => done(Number.NaN))
      .end(body)
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.on('message', async ({ id, job }: { id: number; job: Job }) => {
    const load: Load = await (job.kind === 'flood' ? flood(job) : paced(job))
    process.send?.({ id, load })
  })
  process.on('disconnect', () => process.exit())
}
