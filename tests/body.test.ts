import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { json, text } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import {
  DELETED,
  INTERNAL,
  NOT_UPDATED,
  statusCodeAnswer,
  TOO_LARGE,
  UNAUTHENTICATED,
  withoutHeaders,
} from './answers.js'
import { testApp } from './app.js'
import { inChunks } from './chunks.js'
import { addressOf, ENDPOINT_NAMES, endpoint, usuario } from './endpoints.js'

const MIB = 1024 * 1024

const MALFORMED = statusCodeAnswer(400, 'El cuerpo no es JSON válido')
const UNSUPPORTED = statusCodeAnswer(415, 'El tipo de contenido debe ser application/json')

const service = await testApp({ BODY_LIMIT_MIB: '1' })
const address = await service.app.listen({ host: '127.0.0.1', port: 0 })
const cookie = `auth_token=${service.adminToken}`

interface Sent {
  chunked?: boolean
  /** The length of the chunks in which the body is sent. */
  chunkLength?: number
  type?: string
}

/** Sends all of `body` even when the answer comes earlier, as ordinary clients do. */
async function send(method: string, path: string, body: string | Buffer, sent: Sent = {}) {
  const { chunked = false, chunkLength, type = 'application/json' } = sent
  const request = httpRequest(address + path, {
    method,
    headers: {
      'content-type': type,
      cookie,
      ...((chunked || chunkLength) && { 'transfer-encoding': 'chunked' }),
    },
  })
  // The service may close the connection before the whole body has been sent.
  request.on('error', () => {})
  if (chunkLength) {
    request.flushHeaders()
    const [socket] = await once(request, 'socket')
    socket.write(inChunks(String(body), chunkLength))
  } else {
    request.end(body)
  }
  const [response] = await once(request, 'response')
  return { status: response.statusCode, body: await json(response) }
}

/** Returns a JSON object of exactly this many bytes. */
const large = (bytes: number) => {
  const body = JSON.stringify({ strNombrePerfil: 'x', bitAdministrador: false, relleno: '' })
  return body.replace('""', `"${'x'.repeat(bytes - body.length)}"`)
}

/** Every endpoint that needs a body. */
const BODY_ENDPOINTS = ENDPOINT_NAMES.filter((name) => endpoint(name).withoutFields)

const WITHOUT_FIELDS = [
  ...['', 'null', '[]', '"x"', '1', '{}'],
  `{"otra":${'['.repeat(5000)}${']'.repeat(5000)}}`,
  '{"toString":1,"valueOf":null,"hasOwnProperty":0,"length":-1}',
  '{"__proto__":{"idPerfil":1}}',
]
// Clients that do not encode their text in UTF-8 send such bytes.
const NO_JSON = ['{', '\ufeff{}', Buffer.from('{"strNombreModulo":"ñandú"}', 'latin1')]
const NO_JSON_TYPES = ['text/plain', 'application/x-www-form-urlencoded']

describe.each(BODY_ENDPOINTS)('%s', (name) => {
  const { method, url: path } = addressOf(name)
  const { withoutFields, tooLarge } = endpoint(name)

  it('answers that a field is missing', async () => {
    expect(withoutHeaders(await service.call(method, path))).toEqual(withoutFields)
    for (const body of WITHOUT_FIELDS) {
      expect(await send(method, path, body), body.slice(0, 40)).toEqual(withoutFields)
    }
  })

  it('answers 400 to malformed JSON and 415 to another content type', async () => {
    for (const body of NO_JSON) expect(await send(method, path, body)).toEqual(MALFORMED)
    for (const type of NO_JSON_TYPES) {
      expect(await send(method, path, '{}', { type })).toEqual(UNSUPPORTED)
    }
  })

  it('answers that the body is above its limit, which its head does not say', async () => {
    expect(await send(method, path, large(MIB + 1), { chunked: true })).toEqual(tooLarge)
  })
})

describe('a large body', () => {
  it('ends the connection in chunks of one byte, and is read in chunks of 512 or if it is small', async () => {
    const path = '/api/permisos/guardar-matriz'
    const body = ' '.repeat(MIB)
    await expect(send('POST', path, body, { chunkLength: 1 })).rejects.toThrow()
    expect(await send('POST', path, body, { chunkLength: 512 })).toEqual(MALFORMED)
    const small = ' '.repeat(900)
    expect(await send('POST', path, small, { chunkLength: 1 })).toEqual(MALFORMED)
  })

  it('gets its answer even when the client reads only after it has sent everything', async () => {
    const client = connect(Number(new URL(address).port), '127.0.0.1').pause()
    const body = large(4 * MIB - 1000)
    const head =
      `PUT /api/usuario/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: ${cookie}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    await new Promise<void>((done, fail) => {
      client.on('error', fail)
      client.write(head + body, () => done())
    })
    expect(await text(client)).toContain(JSON.stringify(NOT_UPDATED.body))
  })

  it.each([
    ['POST /api/auth/login', 16 * 1024],
    ['PUT /api/perfil/:id', 64 * 1024],
    ['POST /api/permisos/guardar-matriz', MIB],
    ['POST /api/usuario', MIB],
  ] as const)('is accepted by %s up to %i bytes and no more', async (name, limit) => {
    const { method, url } = addressOf(name)
    const { tooLarge } = endpoint(name)
    expect(await send(method, url, large(limit))).not.toEqual(tooLarge)
    expect(await send(method, url, large(limit + 1))).toEqual(tooLarge)
  })
})

it('an id in a path is validated before the body is read, and after the session', async () => {
  const path = '/api/perfil/x'
  const wrongPath = statusCodeAnswer(400, 'ID de perfil inválido')
  expect(await send('PUT', path, '{')).toEqual(wrongPath)
  const nobody = await service.call('PUT', path, {}, { token: null })
  expect(withoutHeaders(nobody)).toEqual(UNAUTHENTICATED)
})

it('accepts a DELETE with a JSON content type and no body', async () => {
  expect(await send('DELETE', '/api/permisos/999', '')).toEqual(DELETED)
})

// This test ends the session of `cookie`. Tests that need this session must come before it.
it('POST /api/auth/logout accepts a body of 16 KiB and refuses a larger one', async () => {
  expect(await send('POST', '/api/auth/logout', large(16 * 1024 + 1))).toEqual(TOO_LARGE)
  expect(await send('POST', '/api/auth/logout', large(16 * 1024))).toMatchObject({ status: 200 })
})

it('the service frees the bytes of a body that has become too large, even if the client never ends that body', async () => {
  const { app, adminToken } = await testApp({ DATABASE_URL: service.config.DATABASE_URL.url })
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc')
  function countBytes() {
    collectGarbage()
    return process.memoryUsage().arrayBuffers
  }
  let received = 0
  app.server.on('connection', (connection) => {
    connection.on('data', (bytes) => {
      received += bytes.length
    })
  })
  const before = countBytes()

  const clients = Array.from({ length: 5 }, () => connect(Number(port), '127.0.0.1'))
  for (const client of clients) {
    client.write(`POST /api/usuario HTTP/1.1\r\nHost: x\r\nCookie: auth_token=${adminToken}\r\n`)
    client.write('Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n')
    for (let chunk = 0; chunk < 11; chunk += 1) {
      client.write(`100000\r\n${' '.repeat(MIB)}\r\n`)
    }
  }
  await expect.poll(() => received, { timeout: 20_000 }).toBeGreaterThan(clients.length * 11 * MIB)
  // When the service refused the five bodies, it had up to 10 MiB of each in memory. The 20 MiB
  // leave room for garbage of other tests.
  await expect.poll(countBytes).toBeLessThan(before + 20 * MIB)
  for (const client of clients) client.destroy()
})

it('a failure of the service while it reads a body is answered and logged as its own', async () => {
  const concat = vi.spyOn(Buffer, 'concat').mockImplementationOnce(() => {
    throw new RangeError('no memory')
  })
  expect(await send('POST', '/api/permisos', '{}')).toEqual(INTERNAL)
  expect(concat).toHaveBeenCalledOnce()
  concat.mockRestore()
  expect(service.readLog()).toContain('no memory')
})

// This test comes last, because the service may refuse further requests for a second after it: it
// occupies the event loop while it parses the body.
it('a user may send an image of more than half of the usual memory for bodies, if BODY_LIMIT_MIB allows it', async () => {
  const { call } = await testApp({ BODY_LIMIT_MIB: '40' })
  // The image is refused only when the whole body has been read: its padding is in the wrong place.
  const imagenBase64 = `data:image/png;base64,${'A'.repeat(33 * MIB)}=A`
  const answer = await call('POST', '/api/usuario', usuario('grande', { imagenBase64 }))
  const message = 'El campo imagenBase64 debe ser una imagen completa en base64'
  expect(withoutHeaders(answer)).toEqual(statusCodeAnswer(400, message))
})
