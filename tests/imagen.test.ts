import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { DatabaseSilence } from '../src/db.js'
import { type Imagenes, imageHost, storeWithImagen } from '../src/usuario/imagen.js'
import { PNG, testApp } from './app.js'

/** What the host does with the request at hand, and what it has been asked for. */
let respond: RequestListener
let asked: { url: string; body: string }[] = []
const host = createServer(async (request, response) => {
  asked.push({ url: request.url ?? '', body: await text(request) })
  respond(request, response)
}).listen(0, '127.0.0.1')
await once(host, 'listening')
afterAll(() => host.close())
const prefix = `http://127.0.0.1:${(host.address() as AddressInfo).port}`
const { call, readLog } = await testApp({
  CLOUDINARY_URL: `cloudinary://clave:secreto@nube?upload_prefix=${prefix}`,
})

const USUARIO = {
  strNombreUsuario: 'a',
  idPerfil: 1,
  strPwd: 'x',
  strCorreo: 'a@x.es',
  imagenBase64: PNG,
}

/** The status of a create with an image, and the log lines that came of it. */
async function create(listener: RequestListener) {
  respond = listener
  asked = []
  const before = readLog().length
  const { status, body } = await call('POST', '/api/usuario', USUARIO)
  const lines = readLog().slice(before).trim().split('\n')
  return { answer: { status, body }, log: lines.map((line) => JSON.parse(line)) }
}
const NOT_UPLOADED = {
  status: 500,
  body: { statusCode: 500, message: 'No se pudo subir la imagen' },
}
const reasons = (log: any[]) => log.filter(({ msg }) => msg === 'upload').map(({ err }) => err)

it('an upload may take a while', async () => {
  const { answer } = await create((_, response) => {
    const answer = { public_id: 'usuarios_corp/x', secure_url: 'https://x/x.png' }
    setTimeout(() => response.end(JSON.stringify(answer)), 300)
  })
  expect(answer).toMatchObject({ status: 200, body: { data: { imagenUrl: 'https://x/x.png' } } })
  await call('DELETE', `/api/usuario/${answer.body.data.id}`)
  await expect.poll(() => asked).toHaveLength(2)
})

describe('an upload that fails', () => {
  it('is logged with its reason, but nothing of an image that the host quotes', async () => {
    const { answer, log } = await create((_, response) => {
      response.writeHead(400).end(JSON.stringify({ error: { message: `Invalid file ${PNG}` } }))
    })
    expect(answer).toEqual(NOT_UPLOADED)
    expect(reasons(log)).toMatchObject([{ message: 'image host: Invalid file data:… (400)' }])
    expect(readLog()).not.toContain(PNG.slice(22, 40))
    // There is nothing to take back.
    await sleep(50)
    expect(asked.map(({ url }) => url)).toEqual(['/v1_1/nube/image/upload'])
  })

  it('is logged in 200 characters at most', async () => {
    const { log } = await create((_, response) => {
      response.writeHead(400).end(JSON.stringify({ error: { message: 'x'.repeat(300) } }))
    })
    expect(reasons(log)).toMatchObject([{ message: `image host: ${'x'.repeat(200)} (400)` }])
  })

  it.each([
    [200, '{}', 'nonsense'],
    [200, '5', 'nonsense'],
    [200, '{"secure_url":"https://x"}', 'nonsense'],
    [200, '{"public_id":"x","secure_url":1}', 'nonsense'],
    [200, '{"secure_url":', expect.stringMatching(/ \(200\)$/)],
    [500, '{"error":{"message":"Internal"}}', 'Internal (500)'],
    [504, '<html>', expect.stringMatching(/ \(504\)$/)],
  ])('with %i and %s is taken back, for it may have been done', async (status, body, reason) => {
    const { answer, log } = await create((request, response) => {
      if (request.url?.endsWith('/upload')) response.writeHead(status).end(body)
      else response.end('{"result":"ok"}')
    })
    expect(answer).toEqual(NOT_UPLOADED)
    const message = typeof reason === 'string' ? `image host: ${reason}` : reason
    expect(reasons(log)).toMatchObject([{ message }])
    await expect.poll(() => asked.map(({ url }) => url)).toContain('/v1_1/nube/image/destroy')
  })

  it('for want of a connection says why', async () => {
    const none = 'cloudinary://clave:secreto@nube?upload_prefix=http://127.0.0.1:1'
    const own = await testApp({ CLOUDINARY_URL: none })
    const { status, body } = await own.call('POST', '/api/usuario', USUARIO)
    expect({ status, body }).toEqual(NOT_UPLOADED)
    expect(own.readLog()).toContain('"message":"image host: ECONNREFUSED"')
  })

  it('without an answer is taken back, for it may have been done', async () => {
    const { answer } = await create((request, response) => {
      if (request.url?.endsWith('/upload')) request.socket.destroy()
      else response.end('{"result":"ok"}')
    })
    expect(answer).toEqual(NOT_UPLOADED)
    await expect
      .poll(() => asked.map(({ url }) => url))
      .toEqual(['/v1_1/nube/image/upload', '/v1_1/nube/image/destroy'])
    const [uploaded, destroyed] = asked.map(
      ({ body }) => /name="public_id"\s+(\S+)/.exec(body)?.[1],
    )
    expect(destroyed).toBe(`usuarios_corp/${uploaded}`)
    await expect.poll(() => readLog()).toContain(`"publicId":"${destroyed}","msg":"image removed"`)
  })

  it('and goes on for more than 30 s is ended, and taken back', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const created = create((request, response) => {
      if (!request.url?.endsWith('/upload')) response.end('{"result":"ok"}')
    })
    await expect.poll(() => asked).toHaveLength(1)
    vi.advanceTimersByTime(29_999)
    expect(asked).toHaveLength(1)
    vi.advanceTimersByTime(1)
    const { answer, log } = await created
    expect(answer).toEqual(NOT_UPLOADED)
    expect(reasons(log)).toMatchObject([{ message: 'image host: took too long' }])
    await expect.poll(() => asked.map(({ url }) => url)).toContain('/v1_1/nube/image/destroy')
  })

  it('for an answer without end is ended, and taken back', async () => {
    const { answer, log } = await create((request, response) => {
      if (!request.url?.endsWith('/upload')) return response.end('{"result":"ok"}')
      response.on('error', () => {})
      const send = () => {
        if (!response.destroyed) response.write('x'.repeat(0x10000), () => setImmediate(send))
      }
      send()
    })
    expect(answer).toEqual(NOT_UPLOADED)
    expect(reasons(log)).toMatchObject([{ message: 'image host: sends too much' }])
    await expect.poll(() => asked.map(({ url }) => url)).toContain('/v1_1/nube/image/destroy')
  })

  it('and cannot be taken back either is logged', async () => {
    await create((request) => request.socket.destroy())
    await expect.poll(() => readLog()).toContain('"msg":"image not removed"')
    const lines = readLog().trim().split('\n')
    const line = lines.find((line) => line.includes('image not removed')) ?? ''
    expect(JSON.parse(line)).toMatchObject({
      err: { message: expect.stringMatching(/^image host: /) },
      publicId: expect.stringMatching(/^usuarios_corp\//),
    })
  })
})

describe('the address of the image host', () => {
  const account = { cloudName: 'nube', apiKey: 'clave', apiSecret: 'secreto' }
  const log = { info: () => {}, warn: () => {} } as unknown as FastifyBaseLogger

  it('is spoken to in TLS unless it says http:', async () => {
    const first: number[] = []
    const server = createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', (bytes) => {
        first.push(bytes[0] ?? 0)
        socket.destroy()
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
    for (const scheme of ['https', 'http']) {
      const imagenes = imageHost({ ...account, uploadPrefix: `${scheme}://${address}` })
      await imagenes.remove('x', log)
    }
    // The record type of a TLS handshake, and the P of POST.
    expect(first).toEqual([0x16, 0x50])
    server.close()
  })

  it("may be left to the SDK's own", () => {
    expect(() => imageHost({ ...account, uploadPrefix: undefined })).not.toThrow()
  })
})

describe('an image whose user could not be stored', () => {
  const warnings: unknown[][] = []
  const log = { warn: (...args: unknown[]) => warnings.push(args) } as unknown as FastifyBaseLogger
  const alojada = { publicId: 'usuarios_corp/x', url: 'https://x' }

  /** The images removed after `store` has thrown `error`. */
  async function removedAfter(error: unknown) {
    const removed: string[] = []
    const imagenes: Imagenes = {
      upload: async () => alojada,
      remove: async (publicId) => {
        removed.push(publicId)
      },
    }
    const store = () => Promise.reject(error)
    await expect(storeWithImagen(imagenes, PNG, log, store)).rejects.toBe(error)
    return removed
  }

  it('is removed', async () => {
    expect(await removedAfter(new Error('refused'))).toEqual(['usuarios_corp/x'])
    expect(await removedAfter(Object.assign(new Error(), { code: '23505' }))).toEqual([
      'usuarios_corp/x',
    ])
  })

  it.each(['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'ECONNRESET', 'EPIPE'])(
    'is kept after %s, for the row may be there',
    async (code) => {
      expect(await removedAfter(Object.assign(new Error(), { code }))).toEqual([])
    },
  )

  it('is kept after a silence of the database', async () => {
    const silence = new DatabaseSilence()
    expect(silence.message).toBe('the database has not answered in time')
    warnings.length = 0
    expect(await removedAfter(silence)).toEqual([])
    expect(warnings).toEqual([[{ publicId: alojada.publicId }, 'image kept: row unknown']])
  })
})
