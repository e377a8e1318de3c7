import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type AnswerWithHeaders, statusCodeAnswer } from './answers.js'
import { API_HEADERS, testApp } from './app.js'
import { countWaiting } from './hold.js'

const { app, config, sql, adminToken, readLines, readLog } = await testApp()
const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))

/** An answer whose body is not parsed. */
type TextAnswer = AnswerWithHeaders<string>

const MESSAGE = 'La petición no es válida'
const failure = (status: number) => JSON.stringify(statusCodeAnswer(status, MESSAGE).body)

/** Opens a connection and sends these bytes; the client never closes its half. */
function open(bytes: string, to = port) {
  const socket = connect({ port: Number(to), host: '127.0.0.1', allowHalfOpen: true })
  // The service may reset a connection on which the client goes on sending.
  socket.on('error', () => {}).write(bytes)
  return socket
}

/** Parses answers that have a Content-Length each; throws when the text is not HTTP. */
function parseAnswers(received: string): TextAnswer[] {
  if (received === '') return []
  const [, status, head = '', rest = ''] =
    /^HTTP\/1\.1 (\d+) .*?\r\n(.*?)\r\n\r\n(.*)$/s.exec(received) ?? []
  if (!status) throw new Error(`no HTTP answer: ${received}`)
  const headers = Object.fromEntries(
    head.split('\r\n').map((line) => {
      const [name = '', value = ''] = line.split(/: (.*)/, 2)
      return [name.toLowerCase(), value]
    }),
  )
  const bytes = Buffer.from(rest)
  const length = Number(headers['content-length'])
  const body = bytes.subarray(0, length).toString()
  const answer = { status: Number(status), headers, body }
  return [answer, ...parseAnswers(bytes.subarray(length).toString())]
}

/** Sends bytes over a new connection; returns all answers until the service closes it. */
const send = async (bytes: string) => parseAnswers(await text(open(bytes)))

/** Returns the log lines with the answer's `x-request-id`. */
const linesOf = (answer?: TextAnswer) =>
  readLines().filter(({ reqId }) => reqId === answer?.headers['x-request-id'])

const GARBAGE = 'esto no es HTTP\r\n\r\n'
const HOST = 'Host: x\r\n'
const GET = `GET /health/live HTTP/1.1\r\n${HOST}`
const ID = `GET /api/permisos/por-perfil/%ff HTTP/1.1\r\n${HOST}`
const HEALTH = `${GET}Connection: close\r\n\r\n`
const POST = `POST /api/auth/login HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n`
const LIST = `GET /api/modulo/list HTTP/1.1\r\n${HOST}Cookie: auth_token=${adminToken}\r\n\r\n`
/**
 * The beginning of a request, without its last empty line, for a file that is larger than the
 * buffers of a connection.
 */
const BUNDLE = `GET /docs/static/swagger-ui-bundle.js HTTP/1.1\r\n${HOST}`

describe('bytes that are not a valid HTTP request', () => {
  it.each([
    ['no HTTP', GARBAGE, 400],
    ['no host', 'GET /api/modulo/list HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['a path that cannot be decoded', `GET /%zz HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`, 400],
    ['an id that cannot be decoded', `${ID}Connection: close\r\n\r\n`, 400],
    ['a broken body', `${POST}Transfer-Encoding: chunked\r\n\r\nno es hexadecimal\r\n`, 400],
    ['the method CONNECT', `CONNECT x:80 HTTP/1.1\r\n${HOST}\r\n`, 400],
    // The client is still sending when the answer arrives.
    ['headers that are too large', `${GET}X: ${'x'.repeat(5_000_000)}\r\n\r\n`, 431],
  ])('get the usual failure body and headers: %s', async (_, bytes, status) => {
    const [answer, ...others] = await send(bytes)
    expect(others).toEqual([])
    expect(answer).toMatchObject({ status, body: failure(status) })
    expect(answer?.headers).toMatchObject({
      ...API_HEADERS,
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      connection: 'close',
    })
    await expect
      .poll(() => linesOf(answer))
      .toEqual([expect.objectContaining({ level: 30, msg: 'request', status, ip: '127.0.0.1' })])
  })

  it('do no harm if they are a CONNECT and the client resets the connection afterwards', async () => {
    const clients = Array.from({ length: 20 }, () => open(`CONNECT x:80 HTTP/1.1\r\n${HOST}\r\n`))
    await Promise.all(clients.map((client) => once(client, 'data')))
    for (const client of clients) client.resetAndDestroy()
    await sleep(100)
    expect(await send(HEALTH)).toMatchObject([{ status: 200 }])
  })

  it.each([
    ['CONNECT', `CONNECT x:80 HTTP/1.1\r\n${HOST}\r\n`],
    ['CONNECT behind a request', `${GET}\r\nCONNECT x:80 HTTP/1.1\r\n${HOST}\r\n`],
    ['bytes behind a request', `${GET}\r\n${GARBAGE}`],
  ])(
    'are refused on a connection that closes as soon as the client ends it: %s',
    async (_, bytes) => {
      // Without the timer, only the client's end closes the connection.
      vi.useFakeTimers({ toFake: ['setTimeout'] })
      onTestFinished(() => void vi.useRealTimers())
      const opened = once(app.server, 'connection')
      const client = open(bytes)
      let received = ''
      client.on('data', (answer) => {
        received += answer
      })
      const [connection] = (await opened) as [Socket]
      await expect.poll(() => received).toContain('HTTP/1.1 400 ')
      client.write('more')
      await sleep(50)
      client.end()
      await once(connection, 'close', { signal: AbortSignal.timeout(5000) })
    },
  )

  it.each(['*', '*health/live'])('are no path: %s', async (path) => {
    const answers = await send(`GET ${path} HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`)
    expect(answers).toMatchObject([{ status: 404 }])
  })

  it('are not those of HTTP/1.0 without a host', async () => {
    expect(await send('GET /health/live HTTP/1.0\r\n\r\n')).toMatchObject([{ status: 200 }])
  })

  it('are answered after the requests that came before them', async () => {
    const warnings: Error[] = []
    const addWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', addWarning)
    onTestFinished(() => void process.off('warning', addWarning))
    const sent = await sql.begin(async (tx) => {
      await tx`lock table modulo`
      const client = open(LIST + LIST)
      const received = text(client)
      await expect.poll(() => countWaiting(sql)).toBeGreaterThan(0)
      for (let piece = 0; piece < 20; piece++) {
        client.write(GARBAGE)
        await sleep(5)
      }
      return { received }
    })
    const answers = parseAnswers(await sent.received)
    expect(warnings).toEqual([])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400])
    expect(JSON.parse(answers[0]?.body ?? '')).toMatchObject({ success: true })
    expect(answers[1]?.body).toBe(answers[0]?.body)
  })

  it('are answered after a large answer that the client is still reading', async () => {
    const [alone] = await send(`${BUNDLE}Connection: close\r\n\r\n`)
    const [answer, refusal, ...others] = await send(`${BUNDLE}\r\n${GARBAGE}`)
    expect(answer?.body.length).toBe(alone?.body.length)
    expect(refusal).toMatchObject({ status: 400, body: failure(400) })
    expect(others).toEqual([])
  })

  it('are answered in place of the request in whose body they are', async () => {
    const chunked = `${GET}Transfer-Encoding: chunked\r\n\r\nzz\r\n`
    const answers = await send(`${GET}\r\n${chunked}`)
    expect(answers).toMatchObject([{ status: 200 }, { status: 400, body: failure(400) }])
  })

  it('get their answer even when the client reads only after it has sent everything', async () => {
    const client = open(`${GET}X: ${'x'.repeat(20_000)}`)
    for (let piece = 0; piece < 5; piece++) {
      await sleep(50)
      client.write('x'.repeat(1000))
    }
    expect(parseAnswers(await text(client))).toMatchObject([{ status: 431 }])
  })
})

describe('a client that does not finish its request', async () => {
  // The service makes Node check for such connections every second instead of every 30 seconds.
  const { app, call, readLines } = await testApp({ DATABASE_URL: config.DATABASE_URL.url })
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  app.server.headersTimeout = 500
  app.server.requestTimeout = 500

  it.each([
    ['headers are', GET],
    ['body is', `${POST}Content-Length: 9\r\n\r\n{`],
  ])('gets 408 and is disconnected when its %s late', async (_, bytes) => {
    const client = open(bytes, port)
    let received = ''
    client.on('data', (chunk) => {
      received += chunk
    })
    // The service closes its half of the connection; the client keeps its own half open.
    await once(client, 'end', { signal: AbortSignal.timeout(10_000) })
    expect(parseAnswers(received)).toMatchObject([{ status: 408, body: failure(408) }])
    const countConnections = promisify(app.server.getConnections.bind(app.server))
    await expect.poll(countConnections, { timeout: 10_000 }).toBe(0)
  })

  const body = '{"strNombreModulo":"TARDE"}'
  const write =
    `POST /api/modulo HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\nCookie: auth_token=${adminToken}\r\n\r\n${body}`

  it.each([
    ['head', '', write.indexOf('Cookie'), []],
    ['body', '', write.length - 1, [400]],
    ['head, behind another request,', LIST, write.indexOf('Cookie'), []],
  ])('has no write carried out whose %s comes after the 408', async (_, earlier, cut, logged) => {
    const ownLines = () => readLines().filter(({ path }) => path === '/api/modulo')
    const before = ownLines().length
    let received = ''
    await sql.begin(async (tx) => {
      // The earlier request waits until the write is late.
      await tx`lock table modulo`
      const client = open(earlier + write.slice(0, cut), port)
      client.on('data', (answer) => {
        received += answer
        if (received.includes(' 408 ')) client.write(write.slice(cut))
      })
      onTestFinished(() => void client.destroy())
      await sleep(1500)
    })
    await expect.poll(() => received).toContain(' 408 ')
    await sleep(300)
    const statuses = () => ownLines().map(({ status }) => status)
    await expect.poll(() => statuses().slice(before)).toEqual(logged)
    const { data } = (await call('GET', '/api/modulo/list')).body
    expect(data).not.toContainEqual(expect.objectContaining({ strNombreModulo: 'TARDE' }))
  })

  it('leaves no log line when it resets the connection', async () => {
    const before = readLog()
    const client = open(GET)
    await once(client, 'connect')
    await send(HEALTH)
    client.resetAndDestroy()
    await send(HEALTH)
    expect(readLog().slice(before.length)).toBe('')
  })
})

it.each([
  ['what follows a # in the path', '/no/existe#token=secreto', '/no/existe'],
  ['the host and the password of a whole URL', 'http://ana:secreto@x/no?token=secreto', '/no'],
  ['the host of a URL without a path', 'http://ana:secreto@x?token=secreto', '/'],
])('the path of a request is logged without %s', async (_, target, path) => {
  const [answer] = await send(`GET ${target} HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`)
  expect(linesOf(answer)).toMatchObject([{ path }])
})

it('closes the connection after a refused body if the client demands it', async () => {
  const answers = await send(`${POST}Connection: close\r\nContent-Length: 3\r\n\r\n{x}`)
  expect(answers).toMatchObject([{ status: 400, headers: { connection: 'close' } }])
})

it('ignores an unknown Expect header', async () => {
  const answers = await send(`${GET}Expect: lo-que-sea\r\nConnection: close\r\n\r\n`)
  expect(answers).toMatchObject([{ status: 200, body: '{"status":"ok"}' }])
})

it('answers the requests behind a refused body on the same connection', async () => {
  const length = (bytes: number) => `Content-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`
  const noJson = POST + length(3)
  const tooLarge = POST + length(20_000)
  const unsupported = `POST /api/auth/login HTTP/1.1\r\n${HOST}Content-Type: text/plain\r\n${length(3)}`
  const answers = await send(noJson + tooLarge + unsupported + HEALTH)
  expect(answers.map(({ status }) => status)).toEqual([400, 413, 415, 200])
})
