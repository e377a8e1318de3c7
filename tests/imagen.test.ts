import type { IncomingMessage, RequestListener } from 'node:http'
import https from 'node:https'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { NOT_UPDATED, statusCodeAnswer, withoutHeaders } from './answers.js'
import { PNG, startImages, testApp } from './app.js'
import { usuario } from './endpoints.js'
import { says, serve } from './serve.js'

const NOT_UPLOADED = statusCodeAnswer(500, 'No se pudo subir la imagen')
const EMAIL_TAKEN = statusCodeAnswer(500, 'El correo electrónico ya está registrado')

type Service = Awaited<ReturnType<typeof testApp>>

const cloudinaryUrl = (address: string) =>
  `cloudinary://clave:secreto@nube?upload_prefix=${address}`

async function send(service: Service, method: 'POST' | 'PUT', id: number | '', body: object) {
  const url = id === '' ? '/api/usuario' : `/api/usuario/${id}`
  return withoutHeaders(await service.call(method, url, body))
}

const imagenBase64 = PNG
const ANA = usuario('ana', { imagenBase64 })
const EVA = usuario('eva', { imagenBase64: undefined })

it('the SDK of the image host finds no account in the environment', async () => {
  process.env.CLOUDINARY_URL = 'no address'
  process.env.CLOUDINARY_ACCOUNT_URL = 'no address'
  await testApp()
  const { v2: cloudinary } = await import('cloudinary')
  // With `true` the SDK reads the variables again, and would throw an error.
  expect(() => cloudinary.config(true)).not.toThrow()
})

describe('an image', () => {
  let service: Service
  let images: Service['images']
  const create = async (body: object) => (await send(service, 'POST', '', body)).body.data
  const isHosted = async (url: string) => (await fetch(url)).status === 200
  const uploaded = () => images.uploads.map(({ publicId }) => publicId)

  beforeEach(async () => {
    service ??= await testApp()
    images = service.images
    await service.sql`delete from usuario where id > 1`
    images.uploads.length = 0
    images.destroyed.length = 0
  })

  it('is uploaded to usuarios_corp, at most 1000 px wide, and its URL stored as imagenUrl', async () => {
    const { id, imagenUrl } = await create(ANA)
    expect(images.uploads).toEqual([
      {
        publicId: expect.stringMatching(/^usuarios_corp\/[^/]+$/),
        transformation: 'c_limit,q_auto,w_1000',
      },
    ])
    expect(await isHosted(imagenUrl)).toBe(true)

    const { data } = (await send(service, 'PUT', id, ANA)).body
    expect(data.imagenUrl).not.toBe(imagenUrl)
    expect(await isHosted(data.imagenUrl)).toBe(true)
    // The replaced image is removed.
    await expect.poll(() => images.destroyed).toEqual(uploaded().slice(0, 1))
    // An update without an image keeps the name by which the image is removed.
    await send(service, 'PUT', id, { ...ANA, imagenBase64: undefined })
    await service.call('DELETE', `/api/usuario/${id}`)
    await expect.poll(() => images.destroyed).toEqual(uploaded())
  })

  it.each([
    'data:image/svg+xml;base64,PHN2Zz4',
    'data:image/svg+xml;base64,PHN2\nZz4=\n',
    PNG.replace(';base64', ';charset=utf-8;base64'),
  ])('is accepted when it is %j', async (imagenBase64) => {
    expect(await create({ ...EVA, imagenBase64 })).toMatchObject({
      imagenUrl: expect.stringMatching(/^http/),
    })
  })

  it('is not removed from a host to which the service did not upload it', async () => {
    const { id } = await create(EVA)
    await service.sql`update usuario set "imagenUrl" = 'https://otro/x.png' where id = ${id}`
    await service.call('DELETE', `/api/usuario/${id}`)
    const ana = await create(ANA)
    await service.call('DELETE', `/api/usuario/${ana.id}`)
    await expect.poll(() => images.destroyed).toEqual(uploaded())
    expect(service.readLog()).not.toContain('image not removed')
  })

  it.each([
    ['a create with a taken email', 'POST', '', { strCorreo: EVA.strCorreo }, EMAIL_TAKEN],
    ['an update when the database fails', 'PUT', 'ana', { strNumeroCelular: '13' }, NOT_UPDATED],
    ['an update of an unknown user', 'PUT', 999_999, {}, { status: 200, body: { success: true } }],
  ] as const)('is removed again after %s', async (_, method, id, changes, expected) => {
    const { sql } = service
    await sql`alter table usuario drop constraint if exists falla`
    await sql`alter table usuario add constraint falla check ("strNumeroCelular" <> '13')`
    await create(EVA)
    const ana = id === 'ana' ? (await create({ ...ANA, imagenBase64: '' })).id : id
    expect(await send(service, method, ana, { ...ANA, ...changes })).toEqual(expected)
    expect(uploaded()).toHaveLength(1)
    await expect.poll(() => images.destroyed).toEqual(uploaded())
  })
})

describe('an image host', () => {
  /** The host's behaviour at an upload. */
  let upload: RequestListener
  /** The host's behaviour at a removal. */
  let destroy: RequestListener
  /** Whether the host reads the requests. */
  let isReading: boolean
  /** The requests that the host has received. */
  let asked: { url: string; body: string }[] = []
  let service: Service
  const refuses = (message: string) => says(400, JSON.stringify({ error: { message } }))
  const hangUp: RequestListener = (request) => request.socket.destroy()
  const urls = () => asked.map(({ url }) => url.split('/').at(-1))
  /** Returns the ids of the images in the requests that the host has received. */
  const ids = () => asked.map(({ body }) => /name="public_id"\s+(\S+)/.exec(body)?.[1])

  beforeEach(async () => {
    asked = []
    isReading = true
    destroy = says(200, '{"result":"ok"}')
    service ??= await start()
  })

  async function start() {
    const url = await serve(async (request, response) => {
      asked.push({ url: request.url ?? '', body: isReading ? await text(request) : '' })
      if (request.url?.endsWith('/upload')) upload(request, response)
      else destroy(request, response)
    })
    return testApp({ CLOUDINARY_URL: cloudinaryUrl(url) })
  }

  /** Returns the error messages that the log has for uploads that failed during `act`. */
  async function reasons(act: () => Promise<unknown>) {
    const before = service.readLines().length
    await act()
    return service
      .readLines()
      .slice(before)
      .flatMap(({ msg, err }) => (msg === 'upload' ? [err.message] : []))
  }

  it.each<[string, RequestListener, RegExp]>([
    ['hangs up', hangUp, /^image host: ECONNRESET$/],
    ['fails', says(500, '{"error":{"message":"Internal"}}'), /^image host: Internal \(500\)$/],
    [
      'quotes the image',
      refuses(`Invalid file ${PNG}`),
      /^image host: Invalid file data:… \(400\)$/,
    ],
    ['gives a long reason', refuses('x'.repeat(300)), /^image host: x{200} \(400\)$/],
    ['answers no JSON', says(504, '<html>'), /^image host: .+ \(504\)$/],
    ['answers half of the JSON', says(200, '{"secure_url":'), /^image host: .+ \(200\)$/],
    [
      'answers without an id',
      says(200, '{"secure_url":"https://x"}'),
      /^image host: the answer names no image$/,
    ],
    [
      'answers with an address that is no text',
      says(200, '{"public_id":"x","secure_url":1}'),
      /^image host: the answer names no image$/,
    ],
  ])(
    'that %s at an upload makes the request fail, and is asked to remove the image',
    async (_, behave, reason) => {
      upload = behave
      const given = await reasons(async () => {
        expect(await send(service, 'POST', '', ANA)).toEqual(NOT_UPLOADED)
      })
      expect(given).toEqual([expect.stringMatching(reason)])
      await expect.poll(urls).toEqual(['upload', 'destroy'])
      const [uploaded] = ids()
      expect(ids()).toContain(`usuarios_corp/${uploaded}`)
      expect(await service.sql`select "strNombreUsuario" as nombre from usuario`).toEqual([
        { nombre: 'raiz' },
      ])
    },
  )

  it('that takes more than 30 s makes the upload fail, and is asked to remove the image', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    // This image does not fit in the buffers of a connection.
    const large = { ...ANA, imagenBase64: `data:image/png;base64,${'A'.repeat(2 ** 23)}` }
    isReading = false
    // While the timers are faked, expect.poll would advance the time.
    const arrived = new Promise<IncomingMessage>((resolve) => {
      upload = (request, response) => {
        // Unlike the time limit of the SDK, that of the service does not start again with each
        // byte.
        response.write(' ')
        resolve(request)
      }
    })
    let isAnswered = false
    const given = reasons(async () => {
      expect(await send(service, 'POST', '', large)).toEqual(NOT_UPLOADED)
      isAnswered = true
    })
    const request = await arrived
    vi.advanceTimersByTime(29_999)
    for (let turn = 0; turn < 100; turn += 1) await setImmediate()
    expect(isAnswered).toBe(false)
    vi.advanceTimersByTime(1)
    expect(await given).toEqual(['image host: no answer in time'])
    await expect.poll(urls).toEqual(['upload', 'destroy'])
    request.resume()
    await expect.poll(() => request.socket.destroyed).toBe(true)
  })

  it('that also fails at the removal does not change the answer, and the log has a line about it', async () => {
    upload = hangUp
    destroy = hangUp
    expect(await send(service, 'PUT', 1, ANA)).toEqual(NOT_UPDATED)
    await expect.poll(() => service.readLog()).toContain('"msg":"image not removed"')
  })
})

it.each([
  ['Cloudinary’s by default', '', 'api.cloudinary.com'],
  ['another one', '?upload_prefix=https://imagenes.ejemplo.com', 'imagenes.ejemplo.com'],
])('the image host, %s, is called over TLS', async (_, prefix, hostname) => {
  const request = vi.spyOn(https, 'request').mockImplementation(() => {
    throw new Error('not sent')
  })
  onTestFinished(() => request.mockRestore())
  const service = await testApp({ CLOUDINARY_URL: `cloudinary://llave:secreto@nube${prefix}` })
  expect(await send(service, 'POST', '', ANA)).toEqual(NOT_UPLOADED)
  expect(request.mock.calls[0]?.[0]).toMatchObject({
    protocol: 'https:',
    agent: expect.any(https.Agent),
    hostname,
    pathname: '/v1_1/nube/image/upload',
  })
})

it('the stand-in for the image host reads a form whose boundary occurs within a field', async () => {
  const images = await startImages()
  const body = '--la\r\nContent-Disposition: form-data; name="folder"\r\n\r\nclave\r\n--la--'
  const headers = { 'content-type': 'multipart/form-data; boundary=la' }
  const url = `${images.url}/v1_1/nube/image/upload`
  const answer = await fetch(url, { method: 'POST', headers, body })
  // The form is refused, because it has no signature. The answer has the fields that were read.
  expect(answer.status).toBe(401)
  expect(await answer.text()).toContain("'folder=clave'")
})
