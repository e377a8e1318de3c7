/**
 * The load generator, which runs as a process of its own: it receives jobs as messages, one at a
 * time, and answers each with its result.
 */
import autocannon from 'autocannon'

export interface LoadRequest {
  method?: 'GET' | 'POST' | 'PUT'
  path: string
  headers: Record<string, string>
  body?: string
}

/** Sends as many requests as possible; each connection repeats its own share of `requests`. */
export interface Job {
  url: string
  requests: LoadRequest[]
  seconds: number
  connections: number
  /** Whether the server may answer with 503. */
  mayShed?: boolean
}

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

process.on('message', async ({ url, requests, seconds, connections, mayShed }: Job) => {
  let client = 0
  const times: number[] = []
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    timeout: 30,
    setupClient: (each) => {
      const own = client
      client += 1
      each.setRequests(requests.filter((_, index) => index % connections === own))
      each.on('response', (status, _bytes, ms) => {
        if (status < 300) times.push(ms)
      })
    },
  })
  const shed = mayShed ? (result.statusCodeStats?.['503']?.count ?? 0) : 0
  const load: Load = {
    answered: result['2xx'],
    shed,
    failed: result.non2xx + result.errors - shed,
    failures: `${result['4xx']} 4xx, ${result['5xx']} 5xx, ${result.errors} connection errors`,
    seconds: result.duration,
    times,
  }
  process.send?.(load)
})
