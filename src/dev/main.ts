import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pretty from 'pino-pretty'
import { AUDIT_LEVEL } from '../http/log.js'
import { startCaptcha } from './captcha.js'
import { startImageHost } from './imagenes.js'
import { listen } from './local.js'
import { findLogins, insertMuestra, SAMPLE_PASSWORD } from './muestra.js'
import { endWithUs, startPostgres } from './postgres.js'

const FOLDER = resolve('.llavero')
const HOST = process.env.HOST || '127.0.0.1'
const { PORT: SENT_PORT = '' } = process.env
const PORT = Number(SENT_PORT || 3000)
/** The highest port for the service: the image host uses the next one. */
const MAX_PORT = 65_534
const ADDRESS = `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${PORT}`
const FOLDER_HINT = `To start anew, delete ${FOLDER}, unless another npm run dev uses it.`
const PORT_HINT = 'PORT and HOST change it (images are on PORT + 1), as in: PORT=4000 npm run dev'
const ADMIN = { nombre: 'admin', password: 'llavero-admin' }
const SAMPLE_USERS = ['supervisora', 'consulta']

/** For `.catch()`: adds a line that says what to do. */
const withHint = (hint: string) => (error: Error) => {
  throw new Error(`${error.message}\n${hint}`)
}

const LOG_FORMAT = {
  customLevels: { audit: AUDIT_LEVEL },
  useOnlyCustomProps: false,
  sync: true,
  singleLine: true,
  messageFormat: '{msg}{if method} {method} {path}{route} {status}{end}{if ms} in {ms} ms{end}',
  ignore: 'pid,hostname,reqId,ip,method,path,route,status,ms',
}

const closing: (() => Promise<unknown>)[] = []
let stopping = false

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stop(0))
await start().catch((error) => stop(1, error.message))

/**
 * Starts an embedded PostgreSQL, the two stand-ins and the service, and prints the addresses and
 * the logins.
 */
async function start() {
  const dir = join(FOLDER, 'imagenes')
  await mkdir(dir, { recursive: true }).catch(withHint(FOLDER_HINT))
  const images = await startImages(dir).catch(withHint(PORT_HINT))
  closing.push(images.close)
  const captcha = await startCaptcha()
  closing.push(captcha.close)
  const folder = join(FOLDER, 'postgres')
  const database = await startPostgres({ folder }).catch(withHint(FOLDER_HINT))
  closing.push(database.stop)

  await startService({
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
  await insertMuestra(database.url).catch(withHint(FOLDER_HINT))
  const logins = await describeLogins(database.url).catch(withHint(FOLDER_HINT))

  console.log(`
Llavero           ${ADDRESS}
documentation     ${ADDRESS}/docs
administrator     ${logins.administrator}
sample users      ${logins.sampleUsers}
captcha token     any text (rechazar is refused)

It obeys the variables of docs/configuration.md, except DATABASE_URL, JWT_SECRET, CAPTCHA_*,
CLOUDINARY_URL and ADMIN_*. Ctrl-C stops it; the data stays in .llavero/.
`)
}

/**
 * Returns the logins to print. The data may come from an earlier start, so the function checks which
 * passwords are still valid.
 */
async function describeLogins(databaseUrl: string) {
  const [admin] = await findLogins(databaseUrl, [ADMIN.nombre], ADMIN.password)
  const samples = await findLogins(databaseUrl, SAMPLE_USERS, SAMPLE_PASSWORD)
  const names = samples.map(({ nombre }) => nombre).join(', ')
  const known = `${ADMIN.nombre} / ${ADMIN.password}`
  return {
    administrator: admin?.administrador ? known : `changed since the first start (was ${known})`,
    sampleUsers: names ? `${names} / ${SAMPLE_PASSWORD}` : 'changed since the first start',
  }
}

/**
 * Starts the image host on the port after the service's. Throws if PORT is not a valid port, or if
 * one of the two ports is taken. The addresses of images are stored in the database, so the image
 * host must have the same port at every start.
 */
async function startImages(dir: string) {
  if (!/^\d*$/.test(SENT_PORT) || PORT < 1 || PORT > MAX_PORT) {
    throw new Error(`PORT=${SENT_PORT} is no port: it must be a number from 1 to ${MAX_PORT}.`)
  }
  const probe = await listen(() => {}, PORT, HOST)
  await probe.close()
  return startImageHost({ dir, port: PORT + 1 })
}

/** Starts the service in a process of its own, as in production. Resolves when it is ready. */
async function startService(env: NodeJS.ProcessEnv) {
  const server = fileURLToPath(new URL('../server.ts', import.meta.url))
  const child = fork(server, { env, stdio: ['inherit', 'pipe', 'inherit', 'ipc'] })
  child.stdout?.pipe(pretty(LOG_FORMAT))
  const exited = once(child, 'exit')
  endWithUs(child)
  closing.push(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const reason = `The service has ended. If it has not said why:\n${FOLDER_HINT}`
  exited.then(([code]) => stop(code ?? 1, reason))

  const isReady = async () => (await fetch(`${ADDRESS}/health/ready`)).ok
  while (!(await isReady().catch(() => false))) await sleep(100)
}

/** Stops everything that was started, in reverse order, and ends the process with the exit code. */
async function stop(code: number, reason = '') {
  if (stopping) return
  stopping = true
  if (reason) console.error(reason)
  for (const close of closing.reverse()) await close().catch(console.error)
  process.exit(code)
}
