import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { listen } from './local.js'

const [CLOUD, KEY, SECRET] = ['nube', 'clave', 'secreto']
const CALLS = `/v1_1/${CLOUD}/image/`
const IMAGES = `/${CLOUD}/image/upload/`
const IMAGE = /^data:(image\/[^;,]+)[^,]*;base64,(.+)$/s

/**
 * A stand-in for Cloudinary on 127.0.0.1: its signed upload (of data URIs) and destroy, and the
 * images as they came, which outlive it in `dir`. `uploads` and `destroyed` are for tests.
 */
export async function startImageHost(options: { port?: number; dir?: string } = {}) {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'llavero-imagenes-'))
  mkdirSync(dir, { recursive: true })
  const uploads: { publicId: string; transformation: string }[] = []
  const destroyed: string[] = []

  // An image is kept as the data URI that it came as, which has its type too.
  const fileOf = (publicId: string) => join(dir, encodeURIComponent(publicId))

  function upload({ file = '', folder, public_id, transformation = '' }: Record<string, string>) {
    if (!IMAGE.test(file)) return failure(400, 'Invalid image file')
    const publicId = `${folder}/${public_id}`
    writeFileSync(fileOf(publicId), file)
    uploads.push({ publicId, transformation })
    // Nothing is resized: the width is the most that the transformation allows.
    const width = Number(/w_(\d+)/.exec(transformation)?.[1])
    return Response.json({ public_id: publicId, secure_url: server.url + IMAGES + publicId, width })
  }

  function destroy({ public_id: publicId = '' }: Record<string, string>) {
    rmSync(fileOf(publicId), { force: true })
    destroyed.push(publicId)
    return Response.json({ result: 'ok' })
  }

  function image(publicId: string) {
    const [, type = '', base64 = ''] = IMAGE.exec(readFileSync(fileOf(publicId), 'utf8')) ?? []
    // The scripts of an SVG that is opened by itself would be sent the service's cookies.
    const headers = { 'content-type': type, 'content-security-policy': 'sandbox' }
    return new Response(Buffer.from(base64, 'base64'), { headers })
  }

  async function answer(request: IncomingMessage) {
    const { url = '' } = request
    if (url.startsWith(IMAGES)) return image(decodeURIComponent(url.slice(IMAGES.length)))
    const headers = { 'content-type': request.headers['content-type'] ?? '' }
    const parts = await new Response(await buffer(request), { headers }).formData()
    const form = Object.fromEntries([...parts].map(([name, value]) => [name, String(value)]))
    if (url === `${CALLS}upload`) return refusal(form) ?? upload(form)
    if (url === `${CALLS}destroy`) return refusal(form) ?? destroy(form)
    return failure(404, 'Resource not found')
  }

  const server = await listen(async (request, response) => {
    // No such image, no form, or a client that hung up half-way.
    const { status, headers, body } = await answer(request).catch(() => failure(404, 'Not found'))
    response.writeHead(status, Object.fromEntries(headers))
    response.end(body && (await buffer(body)))
  }, options.port)

  return {
    ...server,
    cloudinaryUrl: `cloudinary://${KEY}:${SECRET}@${CLOUD}?upload_prefix=${server.url}`,
    uploads,
    destroyed,
    close: async () => {
      await server.close()
      if (!options.dir) rmSync(dir, { recursive: true, force: true })
    },
  }
}

function failure(status: number, message: string) {
  return Response.json({ error: { message } }, { status })
}

/** The answer to a call that is not signed as Cloudinary wants it; undefined for one that is. */
function refusal(form: Record<string, string>) {
  const { file, cloud_name, resource_type, api_key, signature, ...signed } = form
  const parameters = Object.entries(signed).map(([name, value]) => `${name}=${value}`)
  const toSign = parameters.sort().join('&')
  const expected = createHash('sha1').update(`${toSign}${SECRET}`).digest('hex')
  if (api_key === KEY && signature === expected) return undefined
  return failure(401, `Invalid Signature ${signature}. String to sign - '${toSign}'.`)
}
