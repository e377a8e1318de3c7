import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { insertMuestra } from '../../src/dev/muestra.js'
import { cloneDatabase } from '../app.js'
import { type Document, type Fence, readDocuments } from '../markdown.js'
import { installed } from './program.js'
import { type Service, startService } from './service.js'

/** The address of `npm run dev` in the documents. */
const DOCUMENTED_ADDRESS = 'http://127.0.0.1:3000'
/** The administrator of `npm run dev`, who is also in the documents. */
const ADMIN = {
  ADMIN_USERNAME: 'admin',
  ADMIN_PASSWORD: 'llavero-admin',
  ADMIN_EMAIL: 'admin@ejemplo.com',
}
/** The character that is printed between the outputs of two fences. */
const SEPARATOR = '\x1e'

/** JavaScript that resolves relative URLs like a page that the service itself has served. */
const PAGE = `
const { fetch: send } = globalThis
globalThis.fetch = (path, options) => send(new URL(path, '${DOCUMENTED_ADDRESS}'), options)
`

const INTERPRETERS = {
  sh: (texts: string[]): [string, string[]] => [
    'bash',
    ['-euo', 'pipefail', '-c', texts.join(`\nprintf '${SEPARATOR}'\n`)],
  ],
  js: (texts: string[]): [string, string[]] => [
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      PAGE + texts.join(`\nprocess.stdout.write('${SEPARATOR}')\n`),
    ],
  ],
}

/** Starts a service with the sample data of `npm run dev`. */
async function startSample() {
  const DATABASE_URL = await cloneDatabase()
  const service = await startService({ DATABASE_URL, ...ADMIN })
  await insertMuestra(DATABASE_URL)
  return service
}

/** Runs fences one after the other in one interpreter process; returns the output of each. */
async function run(language: keyof typeof INTERPRETERS, fences: Fence[], address: string) {
  const texts = fences.map(({ text }) => text)
  const [program, args] = INTERPRETERS[language](texts)
  const { stdout } = await promisify(execFile)(
    program,
    args.map((argument) => argument.replaceAll(DOCUMENTED_ADDRESS, address)),
    { env: { PATH: process.env.PATH }, timeout: 60_000 },
  )
  return stdout.split(SEPARATOR).map((output) => output.trim())
}

/** Returns the text of the output fence that follows; undefined when none does. */
function outputBelow({ fences }: Document, fence: Fence) {
  const next = fences[fences.indexOf(fence) + 1]
  return next?.role === 'output' ? next.text.trim() : undefined
}

const allDocuments = await readDocuments()
const documents = allDocuments.filter(({ fences }) => fences.some(({ role }) => role === 'run'))

it('README and docs/api.md have fences marked `run`', () => {
  const names = documents.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['README.md', 'docs/api.md']))
})

it.each(documents)('the `run` fences of $name print the output below them', async (document) => {
  const { address } = await startSample()
  for (const language of ['sh', 'js'] as const) {
    const runnable = document.fences.filter((fence) => {
      return fence.role === 'run' && fence.language === language
    })
    if (runnable.length === 0) continue
    const outputs = await run(language, runnable, address)
    const expected = runnable.map((fence, index) => outputBelow(document, fence) ?? outputs[index])
    expect(outputs).toEqual(expected)
  }
})

/** The day that docs/operating.md takes as its example. */
const DOCUMENTED_DAY = '2026-11-22'
/** How the commands of docs/operating.md select the profile that they take as their example. */
const DOCUMENTED_PROFILE = '== 7'
/** How docs/operating.md reads the log of the replicas. */
const READ_LOG = 'docker compose logs --no-log-prefix app1 app2'

/** Sends the writes that the questions of docs/operating.md are about. */
async function sendAuditedWrites({ call }: Service) {
  async function login(strNombreUsuario: string, strPwd: string, captchaToken = 'x') {
    const body = { strNombreUsuario, strPwd, captchaToken }
    const answer = await call('POST', '/api/auth/login', body)
    return answer.body.token as string
  }
  async function request(token: string, method: string, path: string, body?: object) {
    const answer = await call(method, `/api/${path}`, body, token)
    expect(answer).toMatchObject({ status: 200, body: { success: true } })
    return answer.body.data
  }
  const usuario = (nombre: string, idPerfil: number) => ({
    strNombreUsuario: nombre,
    strPwd: 'una clave larga',
    strCorreo: `${nombre}@ejemplo.com`,
    idPerfil,
  })

  const admin = await login(ADMIN.ADMIN_USERNAME, ADMIN.ADMIN_PASSWORD)
  await request(admin, 'POST', 'usuario', usuario('bruna', 1))
  const bruna = await login('bruna', 'una clave larga')
  const perfil = await request(admin, 'POST', 'perfil', { strNombrePerfil: 'Nuevo' })
  const [ventas] = await request(admin, 'GET', 'modulo?search=VENTAS')
  const [otro] = await request(admin, 'GET', 'modulo?search=COMPRAS')

  // Of these four writes, the first and the last one grant the flag that the question is about.
  const permiso = { idPerfil: perfil.id, idModulo: ventas.id, bitEditar: true }
  await request(bruna, 'POST', 'permisos', permiso)
  await request(admin, 'POST', 'permisos', { ...permiso, idModulo: otro.id })
  const matrix = (...permisos: object[]) => ({ idPerfil: perfil.id, permisos })
  await request(admin, 'POST', 'permisos/guardar-matriz', matrix())
  await request(admin, 'POST', 'permisos/guardar-matriz', matrix(permiso))

  await request(bruna, 'PUT', `modulo/${ventas.id}`, { strNombreModulo: 'ARRIENDOS' })
  await request(admin, 'PUT', `modulo/${otro.id}`, { strNombreModulo: 'VENTAS' })
  await request(bruna, 'DELETE', `modulo/${otro.id}`)

  const carlos = await request(admin, 'POST', 'usuario', usuario('carlos', perfil.id))
  await login('carlos', 'otra clave')
  await login('carlos', 'una clave larga', 'rechazar')
  const path = `perfil/${perfil.id}`
  await request(bruna, 'PUT', path, { strNombrePerfil: 'Nuevo', bitAdministrador: true })
  await request(admin, 'PUT', path, { strNombrePerfil: 'Nuevo', bitAdministrador: false })
  await request(bruna, 'DELETE', `usuario/${carlos.id}`)
  return { carlos: carlos.id, perfil: perfil.id, ventas: ventas.id, otro: otro.id }
}

it.skipIf(!installed('jq'))(
  'the commands of docs/operating.md find the answers to its questions in the audit',
  async () => {
    const service = await startSample()
    const { carlos, perfil, ventas, otro } = await sendAuditedWrites(service)
    const isLast = ({ msg, method, route }: Record<string, unknown>) =>
      msg === 'audit' && method === 'DELETE' && route === '/api/usuario/:id'
    await expect.poll(() => service.lines().some(isLast)).toBe(true)
    const operating = allDocuments.find(({ name }) => name === 'docs/operating.md')
    const commands = (operating?.fences ?? [])
      .map(({ text }) => text)
      .filter((text) => text.includes('audit.jsonl'))
    const [today = ''] = new Date().toISOString().split('T')
    const script = commands
      .join(`printf '${SEPARATOR}'\n`)
      .replace(READ_LOG, 'cat service.log')
      .replace(DOCUMENTED_DAY, today)
      .replaceAll(DOCUMENTED_PROFILE, `== ${perfil}`)

    const cwd = await mkdtemp(join(tmpdir(), 'llavero-audit-'))
    // Half of the lines are in the folder `audit/`, as those of containers that were removed. One of
    // these lines is also in the log.
    const lines = service.readLog().split('\n')
    const half = Math.floor(lines.length / 2)
    onTestFinished(() => rm(cwd, { recursive: true }))
    await mkdir(join(cwd, 'audit'))
    await writeFile(join(cwd, 'audit', 'app1.jsonl'), `${lines.slice(0, half + 1).join('\n')}\n`)
    await writeFile(join(cwd, 'service.log'), lines.slice(half).join('\n'))
    const options = { cwd, timeout: 60_000 }
    const { stdout } = await promisify(execFile)(
      'bash',
      ['-euo', 'pipefail', '-c', script],
      options,
    )

    // The lines of most answers begin with the time.
    const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\t/gm
    const answers = stdout.split(SEPARATOR).map((answer) => answer.replace(time, ''))
    const [, grants, administrator, names, profile, deletion, logins, day = ''] = answers
    expect(grants).toBe('bruna\tPOST\t/api/permisos\nadmin\tPOST\t/api/permisos/guardar-matriz\n')
    expect(administrator).toBe('bruna\tPUT\t/api/perfil/:id\n')
    expect(names).toBe(
      `bruna\t${ventas}\t{"strNombreModulo":["VENTAS","ARRIENDOS"]}\n` +
        `admin\t${otro}\t{"strNombreModulo":["COMPRAS","VENTAS"]}\n` +
        `bruna\t${otro}\t{"perfiles":1,"strNombreModulo":["VENTAS",null]}\n`,
    )
    expect(profile).toBe(`admin\t${carlos}\n`)
    expect(deletion).toBe('bruna\t127.0.0.1\n')
    expect(logins).toBe('127.0.0.1\tpassword\n127.0.0.1\tcaptcha\n')
    expect(day.split('\n').map((line) => line.split('\t').slice(0, 2).join(' '))).toEqual([
      'POST /api/auth/login',
      'POST /api/permisos',
      'PUT /api/modulo/:id',
      'DELETE /api/modulo/:id',
      'PUT /api/perfil/:id',
      'DELETE /api/usuario/:id',
      '',
    ])
  },
)
