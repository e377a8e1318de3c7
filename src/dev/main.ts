import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import pretty from 'pino-pretty'
import { buildApp } from '../app.js'
import { loadConfig } from '../config.js'
import { AUDIT_LEVEL } from '../http/observation/log.js'
import { startCaptcha } from './captcha.js'
import { startImageHost } from './imagenes.js'
import { listen } from './listen.js'
import { insertMuestra, SAMPLE_PASSWORD } from './muestra.js'
import { startPostgres } from './postgres.js'

const FOLDER = resolve('.llavero')
const HOST = process.env.HOST || '127.0.0.1'
const PORT_TEXT = process.env.PORT ?? ''
const PORT = Number(PORT_TEXT || 3000)
/** The highest port for the service: the image host uses the next one. */
const MAX_PORT = 65_534
const FOLDER_HINT = `To start anew, delete ${FOLDER}, unless another npm run dev uses it.`
const PORT_HINT =
  'PORT and HOST choose another address (the images are on PORT + 1): PORT=4000 npm run dev'
const ADMIN = {
  nombre: 'admin',
  password: 'llavero-admin',
}

/**
 * Returns a function for `.catch()`. It throws an error with the message of the error that it gets,
 * and the hint on a line of its own.
 */
const withHint = (hint: string) => (error: Error) => {
  throw new Error(`${error.message}\n${hint}`)
}

const LOG_FORMAT = {
  customLevels: { audit: AUDIT_LEVEL },
  useOnlyCustomProps: false,
  sync: true,
  singleLine: true,
  messageFormat: '{msg}{if method} {method} {path} {status}{end}{if ms} in {ms} ms{end}',
  ignore: 'pid,hostname,reqId,ip,method,path,route,status,ms',
}

/** The functions that stop what was started, in the order of the starts. */
const closers: (() => Promise<unknown>)[] = []
let isStopping = false

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => stop(0))
}
await startAll().catch((error) => stop(1, error.message))

/**
 * Starts an embedded PostgreSQL, the two stand-ins and the service, and prints the addresses and
 * the logins.
 */
async function startAll() {
  const orStartAnew = withHint(FOLDER_HINT)
  const dir = join(FOLDER, 'imagenes')
  await mkdir(dir, { recursive: true }).catch(orStartAnew)
  await checkPort().catch(withHint(PORT_HINT))
  // The addresses of images are stored in the database, so the image host must have the same port
  // at every start.
  const images = await startImageHost(dir, PORT + 1).catch(withHint(PORT_HINT))
  closers.push(images.close)

  const captcha = await startCaptcha()
  closers.push(captcha.close)

  const folder = join(FOLDER, 'postgres')
  const database = await startPostgres({ folder }).catch(orStartAnew)
  closers.push(database.stop)

  const config = loadConfig({
    ...process.env,
    HOST,
    PORT: `${PORT}`,
    DATABASE_URL: database.url,
    JWT_SECRET: 'a secret that anybody may know, for development',
    CAPTCHA_SECRET: 'development',
    CAPTCHA_VERIFY_URL: captcha.url,
    CLOUDINARY_URL: images.cloudinaryUrl,
    ADMIN_USERNAME: ADMIN.nombre,
    ADMIN_PASSWORD: ADMIN.password,
    ADMIN_EMAIL: 'admin@ejemplo.com',
  })
  const { app, start } = await buildApp(config, pretty(LOG_FORMAT))
  closers.push(async () => {
    // Otherwise the service would wait for requests in flight, and keep idle connections open for a
    // moment.
    app.server.closeAllConnections()
    await app.close()
  })
  const address = await start().catch(orStartAnew)
  await insertMuestra(database.url).catch(orStartAnew)

  console.log(`
Llavero           ${address}
documentation     ${address}/docs
database          ${database.url}
administrator     ${ADMIN.nombre} / ${ADMIN.password}
sample users      supervisora, consulta / ${SAMPLE_PASSWORD}
captcha token     any text (rechazar is refused)

These logins are those of the first start; you may have changed them since. The service reads the
variables of docs/configuration.md, except DATABASE_URL, JWT_SECRET, CAPTCHA_*, CLOUDINARY_URL and
ADMIN_*. Ctrl-C stops the service; its data stays in .llavero/.
`)
}

/** Throws if PORT is not a valid port, or if another program listens on it. */
async function checkPort() {
  const isNumber = /^\d*$/.test(PORT_TEXT)
  const isInRange = PORT >= 1 && PORT <= MAX_PORT
  if (!isNumber || !isInRange) {
    throw new Error(`PORT=${PORT_TEXT} is no port: it must be a number from 1 to ${MAX_PORT}.`)
  }
  const probe = await listen(() => {}, PORT, HOST)
  await probe.close()
}

/** Stops everything that was started, in reverse order, and ends the process with the exit code. */
async function stop(code: number, reason = '') {
  if (isStopping) return
  isStopping = true
  if (reason) console.error(reason)
  for (const close of closers.reverse()) {
    await close().catch(console.error)
  }
  process.exit(code)
}
