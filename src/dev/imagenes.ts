import { createHash } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { listen } from './listen.js'

// The account that the stand-in accepts.
const CLOUD = 'nube'
const KEY = 'clave'
const SECRET = 'secreto'
/** The path before the name of an API call. */
const CALLS = `/v1_1/${CLOUD}/image/`
/** The path before the name of an image. */
const IMAGES = `/${CLOUD}/image/upload/`
/** A data URI. Its groups are the media type and the data in base64. */
const DATA_URI = /^data:(image\/[^;,]+)[^,]*;base64,(.+)$/s

/** The fields of a call, by name. */
type Form = Record<string, string>

/**
 * Starts a stand-in for Cloudinary on 127.0.0.1, by default on a free port. It has Cloudinary's
 * signed calls `upload` (of data URIs) and `destroy`, stores the images in the folder `dir`, and
 * serves them unchanged. For tests, `uploads` lists the images that were uploaded, and `destroyed`
 * the names of those that were removed.
 */
export async function startImageHost(dir: string, port?: number) {
  const uploads: { publicId: string; transformation: string }[] = []
  const destroyed: string[] = []

  /** Returns the path of the file with the data URI of the image. */
  function fileOf(publicId: string) {
    return join(dir, encodeURIComponent(publicId))
  }

  function upload(form: Form) {
    const { file = '', folder, public_id, transformation = '' } = form
    const publicId = `${folder}/${public_id}`
    writeFileSync(fileOf(publicId), file)
    uploads.push({ publicId, transformation })

    // The stand-in does not resize images. Its answer contains the largest width that the
    // transformation allows.
    const [, width] = /w_(\d+)/.exec(transformation) ?? []
    return Response.json({
      public_id: publicId,
      secure_url: server.url + IMAGES + publicId,
      width: Number(width),
    })
  }

  function destroy({ public_id: publicId = '' }: Form) {
    rmSync(fileOf(publicId), { force: true })
    destroyed.push(publicId)
    return Response.json({ result: 'ok' })
  }

  function image(publicId: string) {
    const dataUri = readFileSync(fileOf(publicId), 'utf8')
    const [, type = '', base64 = ''] = DATA_URI.exec(dataUri) ?? []
    // A browser sends cookies to every port of a host, so a script in an SVG image could read the
    // cookies of the service. `sandbox` disables scripts.
    const headers = {
      'content-type': type,
      'content-security-policy': 'sandbox',
    }
    const content = Buffer.from(base64, 'base64')
    return new Response(content, { headers })
  }

  async function answer(request: IncomingMessage) {
    const { url = '' } = request
    if (url.startsWith(IMAGES)) {
      const publicId = url.slice(IMAGES.length)
      return image(decodeURIComponent(publicId))
    }
    const form = await readForm(request)
    if (url === `${CALLS}upload`) return refusal(form) ?? upload(form)
    if (url === `${CALLS}destroy`) return refusal(form) ?? destroy(form)
    return failure(404, 'Resource not found')
  }

  const server = await listen(async (request, response) => {
    // `answer` throws if the image is unknown, the body is not a form, or the client hangs up.
    const unknown = () => failure(404, 'Not found')
    const { status, headers, body } = await answer(request).catch(unknown)
    response.writeHead(status, Object.fromEntries(headers))
    response.end(body && (await buffer(body)))
  }, port)

  return {
    ...server,
    cloudinaryUrl: `cloudinary://${KEY}:${SECRET}@${CLOUD}?upload_prefix=${server.url}`,
    uploads,
    destroyed,
  }
}

/**
 * Returns the fields of a body of the type `multipart/form-data`. Throws an error if the body has
 * another type.
 *
 * Node's own parser, `Response.formData`, cannot be used. When the characters of the boundary occur
 * within a field, that parser ends the field there, even if no line break and no dashes precede
 * them. The SDK's boundaries are so short that they occur in the data of an image.
 */
async function readForm(request: IncomingMessage): Promise<Form> {
  const { 'content-type': type = '' } = request.headers
  const [, boundary] = /boundary=(.*)/.exec(type) ?? []
  if (boundary === undefined) throw new Error('the body is not a form')

  // A line break precedes every boundary except the first one.
  const body = `\r\n${await text(request)}`
  const form: Form = {}
  for (const part of body.split(`\r\n--${boundary}`)) {
    const [, name, value] = /name="(.+?)".*?\r\n\r\n(.*)/s.exec(part) ?? []
    if (name !== undefined) form[name] = value ?? ''
  }
  return form
}

function failure(status: number, message: string) {
  return Response.json({ error: { message } }, { status })
}

/**
 * Returns the answer that refuses a wrong key or signature. Returns undefined if both are correct.
 */
function refusal(form: Form) {
  const { file, cloud_name, resource_type, api_key, signature, ...signed } = form
  const toSign = Object.entries(signed)
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join('&')
  const expected = createHash('sha1').update(toSign).update(SECRET).digest('hex')
  if (api_key === KEY && signature === expected) return undefined
  return failure(401, `Invalid Signature ${signature}. String to sign - '${toSign}'.`)
}
