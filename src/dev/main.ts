import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startPasswords } from '../auth/password.js'
import { loadConfig } from '../config.js'
import { openPool } from '../pool.js'
import { startCaptcha } from './captcha.js'
import { startImageHost } from './imagenes.js'
import { insertMuestra, SAMPLE_PASSWORD } from './muestra.js'
import { startPostgres } from './postgres.js'

const FOLDER = fileURLToPath(new URL('../../.llavero/', import.meta.url))
const ADMIN = { username: 'admin', password: 'llavero-admin', email: 'admin@ejemplo.com' }

const closing: (() => Promise<unknown>)[] = []
let stopped: Promise<never> | undefined

/** Stops everything that was started, the last one first, and ends the process. */
function stop(code: number): Promise<never> {
  stopped ??= (async () => {
    for (const close of closing.reverse()) await close().catch(report)
    process.exit(code)
  })()
  return stopped
}

process.on('SIGINT', () => stop(0))
process.on('SIGTERM', () => stop(0))

try {
  await start()
} catch (error) {
  report(error)
  await stop(1)
}

/** The real service over an embedded PostgreSQL and the two stand-ins, all on loopback. */
async function start() {
  await mkdir(FOLDER, { recursive: true })
  const port = Number(process.env.PORT || 3000)

  const database = await startPostgres({ dataDir: join(FOLDER, 'postgres') })
  closing.push(database.stop)
  // On ports of their own, as the addresses of images are kept in the database.
  const captcha = await startCaptcha(port + 1)
  closing.push(captcha.close)
  const images = await startImageHost({
    port: port + 2,
    cloudName: 'llavero',
    apiKey: 'desarrollo',
    apiSecret: 'desarrollo',
    dir: join(FOLDER, 'imagenes'),
  })
  closing.push(images.close)

  const config = loadConfig({
    LOG_LEVEL: 'warn',
    ...process.env,
    HOST: process.env.HOST || '127.0.0.1',
    DATABASE_URL: database.url,
    JWT_SECRET: await keptSecret(join(FOLDER, 'jwt-secret')),
    CAPTCHA_SECRET: 'desarrollo',
    CAPTCHA_VERIFY_URL: captcha.url,
    CLOUDINARY_URL: images.cloudinaryUrl,
    ADMIN_USERNAME: ADMIN.username,
    ADMIN_PASSWORD: ADMIN.password,
    ADMIN_EMAIL: ADMIN.email,
  })
  // The image SDK reads this when it is imported, and throws at what it does not like.
  delete process.env.CLOUDINARY_URL
  const { serve } = await import('../serve.js')
  const service = await serve(config)
  closing.push(service.close)
  await fillWithMuestra(config)

  process.stdout.write(`
Llavero           ${service.address}
documentation     ${service.address}/docs
administrator     ${ADMIN.username} / ${ADMIN.password}
sample users      supervisora, consulta / ${SAMPLE_PASSWORD}
captcha token     any text (rechazar is refused)

Ctrl-C stops it; the data stays in .llavero/
`)
}

async function fillWithMuestra(config: Parameters<typeof openPool>[0]) {
  const sql = await openPool(config)
  const passwords = startPasswords()
  try {
    await insertMuestra(sql, passwords)
  } finally {
    await Promise.all([sql.end(), passwords.close()])
  }
}

/** The secret in `file`, made on the first start: sessions outlive a restart. */
async function keptSecret(file: string) {
  const kept = await readFile(file, 'utf8').catch(() => '')
  if (kept) return kept
  const secret = randomBytes(32).toString('hex')
  await writeFile(file, secret, { mode: 0o600 })
  return secret
}

function report(error: unknown) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
}
