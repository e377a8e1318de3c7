import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'

export type ImageHostOptions = {
  port?: number
  cloudName: string
  apiKey: string
  apiSecret: string
  dir?: string
}

export type Upload = {
  publicId: string
  folder: string
  transformation: string
  bytes: number
  contentType: string
}

export type ImageHost = {
  url: string
  cloudinaryUrl: string
  uploads: Upload[]
  destroyed: string[]
  close(): Promise<void>
}

type Form = Record<string, string>
type Answer = { status: number; headers?: Record<string, string>; body: string | Uint8Array }

/**
 * Starts a stand-in for Cloudinary on 127.0.0.1: signed upload (data URIs only) and destroy, and the
 * images themselves, kept in `dir` or else in memory. Nothing is resized: of a transformation only
 * `c_limit,w_N` counts, and only in the width and height answered. Throws if the port is taken.
 */
export async function startImageHost(options: ImageHostOptions): Promise<ImageHost> {
  const { cloudName, apiKey, apiSecret, dir } = options
  const store = dir === undefined ? memoryStore() : await folderStore(dir)
  const uploads: Upload[] = []
  const destroyed: string[] = []
  let url = ''

  async function upload(form: Form): Promise<Answer> {
    const { folder = '', transformation = '' } = form
    const name = form.public_id ?? randomBytes(10).toString('hex')
    const publicId = folder ? `${folder}/${name}` : name
    const image = /^data:image\/([a-z0-9-]+)(?:\+xml)?(?:;[^;,]+)*;base64,(.+)$/is.exec(
      form.file ?? '',
    )
    if (!form.file) return failure(400, 'Missing required parameter - file')
    if (!image) return failure(400, 'Invalid image file: this stand-in takes data URIs only')
    if (!isPublicId(publicId)) return failure(400, `Invalid public_id: ${publicId}`)

    const format = formatOf(String(image[1]))
    const bytes = Buffer.from(String(image[2]), 'base64')
    if (bytes.length === 0) return failure(400, 'Invalid image file')
    await store.remove(publicId)
    await store.put(publicId, format, bytes)
    const contentType = contentTypeOf(format)
    uploads.push({ publicId, folder, transformation, bytes: bytes.length, contentType })
    const path = publicId.split('/').map(encodeURIComponent).join('/')
    const address = `${url}/${cloudName}/image/upload/v1/${path}.${format}`
    return json(200, {
      public_id: publicId,
      version: 1,
      ...limited(dimensions(bytes), transformation),
      format,
      resource_type: 'image',
      type: 'upload',
      created_at: new Date().toISOString(),
      bytes: bytes.length,
      url: address,
      secure_url: address,
    })
  }

  async function destroy({ public_id: publicId }: Form): Promise<Answer> {
    if (!publicId) return failure(400, 'Missing required parameter - public_id')
    if (!(await store.remove(publicId))) return json(200, { result: 'not found' })
    destroyed.push(publicId)
    return json(200, { result: 'ok' })
  }

  async function serve(path: string): Promise<Answer> {
    const prefix = `/${cloudName}/image/upload/v1/`
    const [, publicId, format] = /^(.+)\.([a-z0-9-]+)$/.exec(path.slice(prefix.length)) ?? []
    const found = path.startsWith(prefix) && publicId && format
    const bytes = found ? await store.get(decodeURIComponent(publicId), format) : undefined
    if (!bytes || !format) return { status: 404, body: '' }
    const headers = {
      'content-type': contentTypeOf(format),
      'x-content-type-options': 'nosniff',
      // An SVG opened by itself could otherwise run its scripts.
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    return { status: 200, headers, body: bytes }
  }

  async function answer(request: IncomingMessage): Promise<Answer> {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    if (request.method === 'GET' || request.method === 'HEAD') return serve(pathname)
    const action = { '/image/upload': upload, '/image/destroy': destroy }[
      pathname.replace(`/v1_1/${cloudName}`, '')
    ]
    if (request.method !== 'POST' || !action) return failure(404, 'Resource not found')
    const form = await readForm(request)
    if (!form) return failure(400, 'Malformed multipart form')
    return refusal(form, apiKey, apiSecret) ?? action(form)
  }

  const server = createServer(async (request, response) => {
    const { status, headers, body } = await answer(request).catch((error) =>
      failure(500, String(error)),
    )
    response.writeHead(status, headers).end(body)
  })
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const prefix = encodeURIComponent(url)

  return {
    url,
    // Key and secret as they are: the SDK does not decode them.
    cloudinaryUrl: `cloudinary://${apiKey}:${apiSecret}@${cloudName}?upload_prefix=${prefix}`,
    uploads,
    destroyed,
    close: async () => {
      const closed = new Promise((done) => server.close(done))
      server.closeAllConnections()
      await closed
    },
  }
}

function json(status: number, body: object): Answer {
  const headers = { 'content-type': 'application/json' }
  return { status, headers, body: JSON.stringify(body) }
}

function failure(status: number, message: string): Answer {
  return json(status, { error: { message } })
}

/** The parts by name, an array (`tags[]`) joined as its signature wants it. */
async function readForm(request: IncomingMessage): Promise<Form | undefined> {
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  const body = await buffer(request)
  const parts = await new Request('http://localhost', { method: 'POST', headers, body })
    .formData()
    .catch(() => undefined)
  if (!parts) return undefined
  const form: Form = {}
  for (const [part, value] of parts) {
    const name = part.replace(/\[\]$/, '')
    if (typeof value !== 'string') continue
    form[name] = name === part ? value : [form[name], value].filter(Boolean).join(',')
  }
  return form
}

/** Why the call is not to be believed, in Cloudinary's words; undefined if it is. */
function refusal(form: Form, apiKey: string, apiSecret: string): Answer | undefined {
  const { file, cloud_name, resource_type, api_key, signature = '', ...signed } = form
  if (api_key !== apiKey) return failure(401, `Invalid api_key ${api_key ?? ''}`)
  const age = Date.now() / 1000 - Number(signed.timestamp)
  if (!(Math.abs(age) <= 3600)) {
    const reported = `reported time is ${signed.timestamp ?? 'missing'}`
    return failure(400, `Stale request - ${reported} which is more than 1 hour ago`)
  }
  const toSign = Object.entries(signed)
    .filter(([, value]) => value !== '')
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, value]) => `${name}=${value}`.replaceAll('&', '%26'))
    .join('&')
  const algorithm = signature.length === 64 ? 'sha256' : 'sha1'
  const expected = createHash(algorithm)
    .update(toSign + apiSecret)
    .digest('hex')
  if (signature === expected) return undefined
  return failure(401, `Invalid Signature ${signature}. String to sign - '${toSign}'.`)
}

function isPublicId(publicId: string): boolean {
  const segments = publicId.split('/')
  const empty = segments.some((segment) => ['', '.', '..'].includes(segment.trim()))
  return !empty && publicId.length <= 255 && !/[?&#\\%<>+\0]/.test(publicId)
}

function formatOf(subtype: string): string {
  const format = subtype.toLowerCase()
  return format === 'jpeg' ? 'jpg' : format
}

function contentTypeOf(format: string): string {
  return `image/${{ jpg: 'jpeg', svg: 'svg+xml' }[format] ?? format}`
}

/** A name without the id in it: no id leads out of the folder, and any length will do. */
function hash(publicId: string): string {
  return createHash('sha256').update(publicId).digest('hex')
}

type Store = {
  put(publicId: string, format: string, bytes: Buffer): Promise<unknown>
  get(publicId: string, format: string): Promise<Buffer | undefined>
  remove(publicId: string): Promise<boolean>
}

function memoryStore(): Store {
  const images = new Map<string, { format: string; bytes: Buffer }>()
  return {
    put: async (publicId, format, bytes) => images.set(publicId, { format, bytes }),
    get: async (publicId, format) => {
      const image = images.get(publicId)
      return image?.format === format ? image.bytes : undefined
    },
    remove: async (publicId) => images.delete(publicId),
  }
}

async function folderStore(dir: string): Promise<Store> {
  await mkdir(dir, { recursive: true })
  const file = (publicId: string, format: string) => join(dir, `${hash(publicId)}.${format}`)
  return {
    put: (publicId, format, bytes) => writeFile(file(publicId, format), bytes),
    get: (publicId, format) => readFile(file(publicId, format)).catch(() => undefined),
    remove: async (publicId) => {
      const names = (await readdir(dir)).filter((name) => name.startsWith(`${hash(publicId)}.`))
      await Promise.all(names.map((name) => rm(join(dir, name), { force: true })))
      return names.length > 0
    },
  }
}

type Size = { width: number; height: number }

/** Read from the header of a PNG, GIF or JPEG; 0 by 0 for anything else. */
function dimensions(bytes: Buffer): Size {
  if (bytes.length >= 24 && bytes.toString('latin1', 1, 4) === 'PNG') {
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
  }
  if (bytes.length >= 10 && bytes.toString('latin1', 0, 3) === 'GIF') {
    return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
  }
  if (bytes.length >= 2 && bytes.readUInt16BE(0) === 0xffd8) {
    // Each segment: FF, its kind, its length; C0 to CF are frames, but for tables (C4, C8, CC).
    for (let at = 2; at + 9 <= bytes.length && bytes[at] === 0xff; ) {
      const kind = bytes.readUInt8(at + 1)
      if (kind >= 0xc0 && kind <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(kind)) {
        return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
      }
      at += 2 + bytes.readUInt16BE(at + 2)
    }
  }
  return { width: 0, height: 0 }
}

function limited({ width, height }: Size, transformation: string): Size {
  const limit = /(?:^|[,/])w_(\d+)/.exec(transformation)
  const most = limit && transformation.includes('c_limit') ? Number(limit[1]) : width
  if (width <= most) return { width, height }
  return { width: most, height: Math.round((height * most) / width) }
}
