import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import http from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { v2 as cloudinary, type UploadApiOptions } from 'cloudinary'
import postgres from 'postgres'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startCaptcha } from '../src/dev/captcha.js'
import { startImageHost } from '../src/dev/imagenes.js'
import { type PostgresServer, startPostgres } from '../src/dev/postgres.js'

let scratch: string
const cleanup: Array<() => Promise<unknown>> = []

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'llavero-dev-'))
  // mkdtemp makes it its owner's alone, and PostgreSQL runs as another account when we are root.
  await chmod(scratch, 0o755)
})

afterEach(async () => {
  for (const step of cleanup.splice(0).reverse()) await step()
})

afterAll(() => rm(scratch, { recursive: true, force: true }))

describe('startPostgres', { timeout: 60_000 }, () => {
  const isRoot = process.getuid?.() === 0

  async function start(dataDir: string, settings: Record<string, string> = {}) {
    const server = await startPostgres({ dataDir, settings: { fsync: 'off', ...settings } })
    cleanup.push(server.stop)
    return server
  }

  async function query(server: PostgresServer, text: string) {
    const sql = postgres(server.url, { max: 1, onnotice: () => {} })
    return sql.unsafe(text).finally(() => sql.end())
  }

  it('keeps its data over a restart, and stops twice without complaint', async () => {
    const dataDir = join(scratch, 'restart')
    const first = await start(dataDir)
    await query(first, "create table note (body text); insert into note values ('ñandú')")
    await first.stop()
    await first.stop()

    const second = await start(dataDir, { work_mem: '5MB' })
    expect(await query(second, 'select body from note')).toEqual([{ body: 'ñandú' }])
    expect(await query(second, 'show server_encoding')).toEqual([{ server_encoding: 'UTF8' }])
    expect(await query(second, 'show work_mem')).toEqual([{ work_mem: '5MB' }])
    expect(await query(second, 'show listen_addresses')).toEqual([
      { listen_addresses: '127.0.0.1' },
    ])
    expect((await readdir(scratch)).filter((name) => name.includes('.init-'))).toEqual([])
  })

  it('asks for the password', async () => {
    const server = await start(join(scratch, 'restart'))
    const url = server.url.replace(/:[0-9a-f]{48}@/, ':wrong@')
    await expect(query({ ...server, url }, 'select 1')).rejects.toMatchObject({ code: '28P01' })
  })

  it('starts again after the server was killed', async () => {
    const dataDir = join(scratch, 'killed')
    const first = await start(dataDir)
    await query(first, 'create table note (body text)')
    process.kill(first.pid, 'SIGKILL')

    const second = await start(dataDir)
    expect(await query(second, 'select body from note')).toEqual([])
  })

  it('refuses a folder on which a server runs, and leaves that server alone', async () => {
    const dataDir = join(scratch, 'busy')
    const server = await start(dataDir)

    await expect(startPostgres({ dataDir })).rejects.toThrow(
      `PostgreSQL already runs on ${dataDir} (pid ${server.pid})`,
    )
    expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it('reports why it did not start', async () => {
    const failed = startPostgres({ dataDir: join(scratch, 'killed'), settings: { port: 'none' } })
    await expect(failed).rejects.toThrow(/did not start on .*:\n.*"port"/s)
  })

  it.runIf(isRoot)('works for root in a folder that only root can read', async () => {
    const closed = join(scratch, 'closed')
    await mkdir(closed, { mode: 0o700 })
    const dataDir = join(closed, 'project', 'data')
    const first = await start(dataDir)
    cleanup.unshift(() => rm(dirname(first.dataDir), { recursive: true }))
    expect(first.dataDir).not.toBe(dataDir)
    await query(first, 'create table note (body text)')
    await expect(startPostgres({ dataDir })).rejects.toThrow('already runs')
    await first.stop()

    const second = await start(dataDir)
    expect(second.dataDir).toBe(first.dataDir)
    expect(await query(second, 'select body from note')).toEqual([])
  })
})

describe('startCaptcha', () => {
  it('verifies every token but an empty one and rechazar', async () => {
    const captcha = await startCaptcha()
    cleanup.push(captcha.close)
    const verify = async (form: Record<string, string>) => {
      const body = new URLSearchParams(form)
      return (await fetch(captcha.url, { method: 'POST', body })).json()
    }

    const good = { secret: 's', response: 'token', remoteip: '192.0.2.1' }
    expect(await verify(good)).toEqual({ success: true })
    expect(captcha.requests).toEqual([good])
    expect(await verify({ secret: 's', response: 'rechazar' })).toEqual({
      success: false,
      'error-codes': ['invalid-input-response'],
    })
    expect(await verify({ response: '' })).toEqual({
      success: false,
      'error-codes': ['missing-input-secret', 'missing-input-response'],
    })
    expect((await fetch(captcha.url)).status).toBe(404)
  })
})

describe('startImageHost', () => {
  const account = { cloudName: 'nube', apiKey: '123', apiSecret: 'secreto' }

  // The start of a PNG of 2000 by 500 is all that is read of it.
  const png = Buffer.alloc(40)
  png.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')
  png.writeUInt32BE(2000, 16)
  png.writeUInt32BE(500, 20)
  const dataUri = (bytes: Buffer, type = 'image/png') =>
    `data:${type};base64,${bytes.toString('base64')}`

  async function start(dir?: string) {
    const host = await startImageHost({ ...account, ...(dir === undefined ? {} : { dir }) })
    cleanup.push(host.close)
    const options: UploadApiOptions = {
      cloud_name: account.cloudName,
      api_key: account.apiKey,
      api_secret: account.apiSecret,
      upload_prefix: host.url,
      agent: new http.Agent(),
    }
    const upload = (file: string, more: UploadApiOptions = {}) =>
      cloudinary.uploader.upload(file, { ...options, ...more })
    const destroy = (publicId: string): Promise<unknown> =>
      cloudinary.uploader.destroy(publicId, { ...options })
    return { ...host, upload, destroy }
  }

  it('takes what the real SDK signs, and serves it', async () => {
    const host = await start()
    const answer = await host.upload(dataUri(png), {
      folder: 'usuarios más',
      public_id: 'uno',
      tags: ['a&b', 'c'],
      transformation: [{ width: 1000, crop: 'limit' }],
    })

    expect(answer).toMatchObject({
      public_id: 'usuarios más/uno',
      width: 1000,
      height: 250,
      bytes: 40,
      format: 'png',
      resource_type: 'image',
      type: 'upload',
      secure_url: `${host.url}/nube/image/upload/v1/usuarios%20m%C3%A1s/uno.png`,
    })
    expect(host.uploads).toEqual([
      {
        publicId: 'usuarios más/uno',
        folder: 'usuarios más',
        transformation: 'c_limit,w_1000',
        bytes: 40,
        contentType: 'image/png',
      },
    ])
    const image = await fetch(answer.secure_url)
    expect(image.headers.get('content-type')).toBe('image/png')
    expect(image.headers.get('x-content-type-options')).toBe('nosniff')
    expect(Buffer.from(await image.arrayBuffer())).toEqual(png)
  })

  it('reads the size of JPEG and GIF, and makes up a public id', async () => {
    const host = await start()
    const jpeg = Buffer.from('ffd8ffe000044a46ffc000110800200040', 'hex')
    const gif = Buffer.from('474946383961300010000000', 'hex')
    const first = await host.upload(dataUri(jpeg, 'image/jpeg'))
    const second = await host.upload(dataUri(gif, 'image/gif'))

    expect(first).toMatchObject({ width: 64, height: 32, format: 'jpg' })
    expect(second).toMatchObject({ width: 48, height: 16, format: 'gif' })
    expect(first.public_id).not.toBe(second.public_id)
  })

  it('takes 10 MiB', async () => {
    const host = await start()
    const answer = await host.upload(dataUri(randomBytes(10 * 1024 * 1024)))
    expect(answer).toMatchObject({ bytes: 10 * 1024 * 1024, width: 0, height: 0 })
  })

  it('refuses in the shape of the real one', async () => {
    const host = await start()
    const refused = (file: string, options: UploadApiOptions = {}) =>
      host.upload(file, options).catch((error: unknown) => error)
    const old = Math.round(Date.now() / 1000) - 3700

    expect(await refused(dataUri(png), { api_secret: 'otro' })).toMatchObject({
      http_code: 401,
      message: expect.stringMatching(
        /^Invalid Signature [0-9a-f]{40}\. String to sign - 'timestamp=/,
      ),
    })
    expect(await refused(dataUri(png), { api_key: '9' })).toMatchObject({ http_code: 401 })
    expect(await refused(dataUri(png), { timestamp: old })).toMatchObject({ http_code: 400 })
    expect(await refused('https://example.com/a.png')).toMatchObject({ http_code: 400 })
    expect(await refused(dataUri(png, 'text/html'))).toMatchObject({ http_code: 400 })
    expect(await refused(dataUri(png), { public_id: '../../fuera' })).toMatchObject({
      http_code: 400,
    })
    expect(host.uploads).toEqual([])
  })

  it('outlives a client that hangs up half-way', async () => {
    const host = await start()
    const socket = connect(Number(new URL(host.url).port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write('POST /v1_1/nube/image/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nab')
    await new Promise((done) => setTimeout(done, 50))
    socket.destroy()
    expect((await host.upload(dataUri(png))).bytes).toBe(40)
  })

  it('finds its images again in dir, and destroys them', async () => {
    const dir = join(scratch, 'imagenes')
    const before = await start(dir)
    await before.upload(dataUri(png), { public_id: 'a/b' })
    await before.close()

    const host = await start(dir)
    const address = `${host.url}/nube/image/upload/v1/a/b.png`
    expect((await fetch(address)).status).toBe(200)
    expect(await host.destroy('a/b')).toEqual({ result: 'ok' })
    expect(await host.destroy('a/b')).toEqual({ result: 'not found' })
    expect(host.destroyed).toEqual(['a/b'])
    expect((await fetch(address)).status).toBe(404)
    expect(await readdir(dir)).toEqual([])
  })

  it('puts its address and the credentials into cloudinaryUrl', async () => {
    const host = await start()
    const address = new URL(host.cloudinaryUrl)
    expect(address.hostname).toBe('nube')
    expect(address.username).toBe('123')
    expect(address.password).toBe('secreto')
    expect(address.searchParams.get('upload_prefix')).toBe(host.url)
  })
})
