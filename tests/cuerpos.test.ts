import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { testApp } from './app.js'
import { A, B, NOT_UPDATED } from './endpoints.js'

const MIB = 1024 * 1024
/** What is sent at a time. */
const PIECE = 64 * 1024
/** More than the kernel's buffers hold, and no more than a service of that limit should read. */
const IN_BOUND = 4 * MIB - 1000

const TOO_LARGE = A(413, 'El cuerpo de la petición es demasiado grande')
const NO_CAPTCHA = A(400, 'Fallo en la validación del captcha.')
const NO_SESSION = A(401, 'Sesión no válida o expirada')

const test = await testApp({ BODY_LIMIT_MIB: '1', TRUST_PROXY: 'loopback' })
const address = await test.app.listen({ host: '127.0.0.1', port: 0 })
const cookie = `auth_token=${test.adminToken}`

interface Sent {
  chunked?: boolean
  /** With `Connection: close` or the client's usual keep-alive. */
  close?: boolean
  session?: boolean
  type?: string
  expectation?: string
}

interface Received {
  status: number | undefined
  body: any
  retryAfter?: string
}

/** Sends all of `body` before it looks at the answer, as ordinary clients do. */
async function send(method: string, path: string, body: Buffer | string, sent: Sent = {}) {
  const {
    chunked = false,
    close = false,
    session = true,
    type = 'application/json',
    expectation,
  } = sent
  const length = chunked ? {} : { 'content-length': Buffer.byteLength(body) }
  const headers = {
    'content-type': type,
    ...(session && { cookie }),
    ...(expectation && { expect: expectation }),
    ...length,
  }
  const request = httpRequest(address + path, { method, headers, agent: close ? false : undefined })
  const answered = new Promise<Received>((resolve, reject) => {
    request.on('error', reject)
    request.on('response', (response) =>
      text(response).then((body) => {
        const { statusCode: status, headers } = response
        const retryAfter = headers['retry-after']
        resolve({ status, body: JSON.parse(body), ...(retryAfter && { retryAfter }) })
      }, reject),
    )
  })
  // A connection that is reset amid the pieces calls none of them back; `answered` tells it.
  const settled = answered.catch(() => {})
  request.setTimeout(5000, () => request.destroy(new Error('no answer in 5 s')))
  const bytes = Buffer.from(body)
  for (let at = 0; at < bytes.length && !request.destroyed; at += PIECE) {
    const piece = bytes.subarray(at, at + PIECE)
    await Promise.race([settled, new Promise((resolve) => request.write(piece, resolve))])
  }
  request.end()
  return answered
}

/** Each text after a name for its test, of no more than 40 characters. */
const named = (texts: string[]) => texts.map((text) => [text.slice(0, 40), text] as const)

/** Valid JSON of that many bytes. */
const large = (bytes: number) => {
  const body = JSON.stringify({ strNombrePerfil: 'x', bitAdministrador: false, relleno: '' })
  return body.replace('""', `"${'x'.repeat(bytes - body.length)}"`)
}

describe.each([
  { chunked: false, close: false },
  { chunked: false, close: true },
  { chunked: true, close: false },
  { chunked: true, close: true },
])('a body too large over node:http, %j', (sent) => {
  it.each([
    ['PUT', '/api/perfil/1', TOO_LARGE],
    ['POST', '/api/auth/login', TOO_LARGE],
    ['POST', '/api/modulo', TOO_LARGE],
    ['POST', '/api/permisos/guardar-matriz', TOO_LARGE],
    ['POST', '/api/usuario', A(500, 'La imagen es demasiado grande')],
    ['PUT', '/api/usuario/1', NOT_UPDATED],
  ])('%s %s is told so', async (method, path, expected) => {
    for (const bytes of [MIB + 1, IN_BOUND]) {
      expect(await send(method, path, large(bytes), sent)).toEqual(expected)
    }
  })

  it('without a session is refused for that', async () => {
    for (const bytes of [MIB - 1, IN_BOUND]) {
      const answer = await send('PUT', '/api/perfil/1', large(bytes), { ...sent, session: false })
      expect(answer).toEqual(NO_SESSION)
    }
  })

  it('of another type, or to nowhere, is refused for that', async () => {
    expect(
      await send('PUT', '/api/perfil/1', large(IN_BOUND), { ...sent, type: 'text/csv' }),
    ).toEqual(A(415, 'El tipo de contenido debe ser application/json'))
    const nowhere = await send('POST', '/api/nada', large(IN_BOUND), sent)
    expect([A(404, 'Recurso no encontrado'), TOO_LARGE]).toContainEqual(nowhere)
  })
})

describe('a body beyond every bound', () => {
  it('leaves the service as it was, whatever its sender sees', async () => {
    const before = test.readLog().length
    const sent = send('PUT', '/api/perfil/1', large(40 * MIB))
    expect(await sent.catch(() => TOO_LARGE)).toEqual(TOO_LARGE)
    const log = () => test.readLog().slice(before)
    await expect.poll(log).toMatch(/"status":413,"ms":\d+,"ip":"127/)
    expect(await send('PUT', '/api/perfil/1', 'null')).toEqual(A(400, 'El nombre es obligatorio'))
  })
})

describe('the connection of a refused request', () => {
  /** Announces so much, sends no more than is drained and a bit, and gives the whole answer. */
  async function refused(announced: number, session: boolean) {
    const client = connect(Number(new URL(address).port), '127.0.0.1')
    const answer = text(client)
    client.write(
      'PUT /api/perfil/1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
        `${session ? `Cookie: ${cookie}\r\n` : ''}Content-Length: ${announced}\r\n\r\n`,
    )
    client.write(Buffer.alloc(Math.min(announced, 4 * MIB + PIECE), ' '))
    // Where it is kept, it ends with the next answer.
    client.write('GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    const statuses = (await answer).match(/(?<=HTTP\/1.1 )\d+/g)
    return { statuses, connection: /(?<=\r\nconnection: )[\w-]+/i.exec(await answer)?.[0] }
  }

  it('is kept where its body was read, and else ended', async () => {
    for (const size of [0, 1000, 4 * MIB]) {
      const kept = { statuses: ['401', '200'], connection: 'keep-alive' }
      expect(await refused(size, false)).toEqual(kept)
    }
    const ended = { statuses: ['401'], connection: 'close' }
    expect(await refused(40 * MIB, false)).toEqual(ended)
  })

  it('is ended where its body was too large, however much of it is still to come', async () => {
    for (const size of [MIB + 1, 40 * MIB]) {
      expect(await refused(size, true)).toEqual({ statuses: ['413'], connection: 'close' })
    }
  })
})

describe('a body that does not come in whole', () => {
  it('is the fault of its sender, in the log', async () => {
    const before = test.readLog().length
    const client = connect(Number(new URL(address).port), '127.0.0.1')
    client.end(
      `PUT /api/perfil/31 HTTP/1.1\r\nHost: x\r\nCookie: ${cookie}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{',
    )
    const log = () => test.readLog().slice(before)
    await expect.poll(log).toMatch(/perfil\/31","status":400,.*"aborted":true/)
    expect(log()).not.toMatch(/"level":"error"/)
  })
})

describe('fetch', () => {
  const json = { 'content-type': 'application/json' }
  const put = async (headers: Record<string, string>, body: string | ReadableStream) => {
    const response = await fetch(`${address}/api/perfil/1`, {
      method: 'PUT',
      headers: { ...json, ...headers },
      body,
      duplex: 'half',
    } as RequestInit)
    return { status: response.status, body: await response.json() }
  }
  const stream = (bytes: number) => new Blob([large(bytes)]).stream()

  it('is told of a body too large, and of no session', async () => {
    for (const bytes of [MIB + 1, IN_BOUND]) {
      expect(await put({ cookie }, large(bytes))).toEqual(TOO_LARGE)
      expect(await put({ cookie }, stream(bytes))).toEqual(TOO_LARGE)
      expect(await put({}, large(bytes))).toEqual(NO_SESSION)
      expect(await put({}, stream(bytes))).toEqual(NO_SESSION)
    }
  })
})

describe('an expectation that nobody knows', () => {
  it('is as none at all', async () => {
    const sent = { expectation: 'paciencia' }
    expect(await send('PUT', '/api/perfil/1', 'null', sent)).toEqual(
      A(400, 'El nombre es obligatorio'),
    )
    expect(await send('PUT', '/api/perfil/1', large(MIB + 1), sent)).toEqual(TOO_LARGE)
  })
})

describe('a body of just the limit', () => {
  it('is taken', async () => {
    const [perfil] = await test.app.sql`
      insert into perfil ("strNombrePerfil") values ('y') returning id
    `
    for (const chunked of [false, true]) {
      expect(await send('PUT', `/api/perfil/${perfil?.id}`, large(MIB), { chunked })).toEqual({
        status: 200,
        body: {
          success: true,
          data: { id: perfil?.id, strNombrePerfil: 'x', bitAdministrador: false },
        },
      })
    }
  })
})

describe('a body that comes in slowly', () => {
  const PERFIL = 'PUT /api/perfil/999'

  /** From here on time goes by when the test says so, for timers of this kind. */
  function stopTime(...timers: ('Timeout' | 'Interval')[]) {
    const toFake = timers.flatMap((timer) => [`set${timer}`, `clear${timer}`] as const)
    vi.useFakeTimers({ toFake: [...toFake, 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
  }

  /** Waits for 2 s at most. `expect.poll` would let the time go by. */
  async function until(holds: () => boolean) {
    for (const end = Date.now() + 2000; !holds() && Date.now() < end; ) await setImmediate()
    expect(holds()).toBe(true)
  }

  /** Sends the head of a request, and waits for its body to be waited for. */
  async function begin(head: string, length: number | 'chunked', session = true) {
    const accepted = once(test.app.server, 'connection')
    const client = connect(Number(new URL(address).port), '127.0.0.1')
    const answer = text(client).catch(String)
    const [server] = (await accepted) as [Socket]
    onTestFinished(() => void client.destroy())
    const timers = vi.getTimerCount()
    client.write(
      `${head} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n` +
        (length === 'chunked'
          ? 'Transfer-Encoding: chunked\r\n'
          : `Content-Length: ${length}\r\n`) +
        `${session ? `Cookie: ${cookie}\r\n` : ''}\r\n`,
    )
    await until(() => vi.getTimerCount() > timers)
    /** Sends more of the body, and waits for it to be read. */
    const more = async (piece: string) => {
      const before = server.bytesRead
      client.write(piece)
      await until(() => server.bytesRead === before + piece.length)
    }
    return { server, more, answer }
  }

  it.each([
    { length: 1000, rate: 240 },
    { length: 64 * 1024, rate: 240 },
    { length: 64 * 1024 + 1, rate: 8192 },
  ])('is cut off after 5 s below its rate, %j', async ({ length, rate }) => {
    stopTime('Interval')
    const { server, more } = await begin(PERFIL, length)
    vi.advanceTimersByTime(5000)
    expect(server.destroyed).toBe(false)
    await more('x'.repeat(2 * rate))
    vi.advanceTimersByTime(2000)
    expect(server.destroyed).toBe(false)
    vi.advanceTimersByTime(1000)
    expect(server.destroyed).toBe(true)
    await until(() => vi.getTimerCount() === 0)
  })

  it.each([{ session: true }, { session: false }])(
    'and has no end is answered once it has one, however soon it is refused, %j',
    async ({ session }) => {
      stopTime('Interval')
      const { server, more, answer } = await begin(PERFIL, 'chunked', session)
      await more(`110000\r\n${'x'.repeat(0x110000)}\r\n`)
      for (let turn = 0; turn < 20; turn += 1) await setImmediate()
      expect(server.bytesWritten).toBe(0)
      await more('0\r\n\r\n')
      expect(await answer).toMatch(session ? /^HTTP\/1.1 413/ : /^HTTP\/1.1 401/)
    },
  )

  it('is held to the higher rate once it has become large', async () => {
    stopTime('Interval')
    const { server, more } = await begin(PERFIL, 'chunked')
    await more(`10000\r\n${'x'.repeat(0x10000)}\r\n`)
    vi.advanceTimersByTime(10_000)
    expect(server.destroyed).toBe(false)
    await more('1\r\nx\r\n')
    vi.advanceTimersByTime(5000)
    expect(server.destroyed).toBe(false)
    vi.advanceTimersByTime(1000)
    expect(server.destroyed).toBe(true)
    await until(() => vi.getTimerCount() === 0)
  })

  it('keeps large ones of others without a session waiting, but nobody with one', async () => {
    stopTime('Interval')
    const { server } = await begin('POST /api/auth/login', MIB, false)
    let isAnswered = false
    const waiting = send('POST', '/api/auth/login', large(MIB - 1), { session: false })
    waiting.then(() => {
      isAnswered = true
    })
    expect(await send('PUT', '/api/perfil/999', large(MIB))).toEqual(A(404, 'Perfil no encontrado'))
    expect(await send('POST', '/api/auth/login', '', { session: false })).toEqual(NO_CAPTCHA)
    expect(await send('POST', '/api/auth/login', large(IN_BOUND), { session: false })).toEqual(
      TOO_LARGE,
    )
    expect(isAnswered).toBe(false)
    server.destroy()
    expect(await waiting).toEqual(NO_CAPTCHA)
    expect(await send('POST', '/api/auth/login', large(MIB), { session: false })).toEqual(
      NO_CAPTCHA,
    )
  })

  it('keeps nobody with a session waiting beside some others', async () => {
    stopTime('Interval')
    for (let others = 0; others < 3; others += 1) await begin(PERFIL, MIB)
    expect(await send('PUT', '/api/perfil/999', large(MIB))).toEqual(A(404, 'Perfil no encontrado'))
  })

  it('and grows large while there is no memory for it is told so', async () => {
    stopTime('Timeout', 'Interval')
    const { more } = await begin('POST /api/auth/login', MIB, false)
    await more('x'.repeat(0x10000))
    const sent = send('POST', '/api/auth/login', large(MIB - 1), { session: false, chunked: true })
    // Until it has.
    const soon = Date.now() + 300
    await until(() => Date.now() > soon)
    vi.advanceTimersByTime(10_000)
    const busy = A(503, 'Servicio ocupado. Intente de nuevo más tarde.')
    expect(await sent).toEqual({ ...busy, retryAfter: '5' })
  })

  it.each([
    { length: 1000, rate: 240 },
    { length: MIB, rate: 8192 },
  ])('is cut off below its rate where it is refused unread, %j', async ({ length, rate }) => {
    stopTime('Interval')
    const { server, more } = await begin(PERFIL, length, false)
    vi.advanceTimersByTime(5000)
    await more('x'.repeat(2 * rate))
    vi.advanceTimersByTime(2000)
    expect(server.destroyed).toBe(false)
    vi.advanceTimersByTime(1000)
    expect(server.destroyed).toBe(true)
    await until(() => vi.getTimerCount() === 0)
  })

  it('and is refused unread is answered once it is there', async () => {
    stopTime('Interval')
    const { answer, more } = await begin(PERFIL, 10_000, false)
    for (let seconds = 0; seconds < 40; seconds += 4) {
      vi.advanceTimersByTime(4000)
      await more('x'.repeat(1000))
    }
    expect(await answer).toMatch(/^HTTP\/1.1 401/)
  })

  it('that ends a session takes nothing from the others', async () => {
    for (let others = 0; others < 64; others += 1) {
      const client = connect(Number(new URL(address).port), '127.0.0.1')
      client.on('error', () => {})
      onTestFinished(() => void client.destroy())
      client.write(
        `POST /api/auth/logout HTTP/1.1\r\nHost: x\r\nCookie: ${cookie}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${MIB}\r\n\r\n`,
      )
    }
    await sleep(300)
    const put = send('PUT', '/api/perfil/999', large(MIB))
    expect(await Promise.race([put, sleep(2000)])).toEqual(A(404, 'Perfil no encontrado'))
  })
})

it.each([
  ['/api/permisos/x', A(400, 'ID de permiso inválido')],
  ['/api/perfil/x', A(400, 'ID de perfil inválido')],
  ['/api/modulo/x', B(200, 'ID de módulo inválido.')],
  ['/api/usuario/x', A(400, 'ID de usuario inválido')],
] as const)('of PUT %s the path is told first', async (path, wrongPath) => {
  expect(await send('PUT', path, '{')).toEqual(wrongPath)
  expect(await send('PUT', path, '{}', { type: 'text/plain' })).toEqual(wrongPath)
  for (const chunked of [false, true]) {
    expect(await send('PUT', path, large(MIB + 1), { chunked })).toEqual(wrongPath)
  }
  expect(await send('PUT', path, '{', { session: false })).toEqual(NO_SESSION)
})

/** What each endpoint says of a body that has none of its fields. */
const OF_NOTHING = [
  ['POST', '/api/auth/login', NO_CAPTCHA],
  ['POST', '/api/permisos', A(400, 'Perfil y Módulo son obligatorios')],
  ['PUT', '/api/permisos/1', A(400, 'Perfil y Módulo son obligatorios')],
  ['POST', '/api/permisos/guardar-matriz', A(400, 'ID de perfil requerido')],
  ['PUT', '/api/perfil/1', A(400, 'El nombre es obligatorio')],
  ['POST', '/api/modulo', B(200, 'El nombre del módulo es obligatorio.')],
  ['PUT', '/api/modulo/1', B(200, 'El nombre del módulo es obligatorio.')],
  ['POST', '/api/usuario', A(400, 'El campo strNombreUsuario es obligatorio')],
  ['PUT', '/api/usuario/1', A(400, 'El campo strNombreUsuario es obligatorio')],
] as const

const MALFORMED = A(400, 'El cuerpo no es JSON válido')

describe.each(OF_NOTHING)('%s %s', (method, path, ofNothing) => {
  it.each(
    named([
      'null',
      '[]',
      '"x"',
      '1',
      'true',
      '{}',
      '',
      '[[[{}]]]',
      '{"otra":1e400,"otra":{}}',
      `{"otra":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
      `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`,
      '{"toString":1,"valueOf":null,"hasOwnProperty":0,"length":-1}',
    ]),
  )('has none of its fields in %s', async (_, body) => {
    expect(await send(method, path, body)).toEqual(ofNothing)
  })

  it.each(
    named([
      '{',
      '{"a":1,}',
      "{'a':1}",
      'nulo',
      '{"a":1}{"b":2}',
      '\u0000',
      '{"a":"\n"}',
      '{"a":NaN}',
      '['.repeat(50_000),
    ]),
  )('reads no JSON in %j', async (_, body) => {
    expect(await send(method, path, body)).toEqual(MALFORMED)
  })

  it('reads no JSON in bytes that are no UTF-8, or takes them for text', async () => {
    const { status } = await send(method, path, Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]))
    expect(status).toBe(400)
  })

  it.each([
    '{"__proto__":{}}',
    '{"__proto__":null,"strNombreModulo":null}',
    '{"otra":{"__proto__":{}}}',
    '{"constructor":{"prototype":{"idPerfil":1}}}',
  ])('takes nothing from the prototype in %s', async (body) => {
    expect(await send(method, path, body)).toEqual(ofNothing)
  })
})
