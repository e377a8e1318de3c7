import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type postgres from 'postgres'
import { expect, it, onTestFinished } from 'vitest'
import { insertMuestra } from '../../src/dev/muestra.js'
import { cloneDatabase } from '../app.js'
import { connectTo } from '../connect.js'
import { usuario } from '../endpoints.js'
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

const hasJq = installed('jq') !== undefined
const skipNote = hasJq ? '' : ' (skipped: jq is not installed)'

/** JavaScript that resolves relative URLs like a page that the service itself has served. */
const PAGE = `
const { fetch: send } = globalThis
globalThis.fetch = (path, options) => send(new URL(path, '${DOCUMENTED_ADDRESS}'), options)
`

const INTERPRETERS = {
  sh: {
    program: 'bash',
    args: ['-euo', 'pipefail', '-c'],
    begin: '',
    separate: `printf '${SEPARATOR}'`,
  },
  js: {
    program: process.execPath,
    args: ['--input-type=module', '--eval'],
    begin: PAGE,
    separate: `process.stdout.write('${SEPARATOR}')`,
  },
}
type Language = keyof typeof INTERPRETERS

/** Starts a service with the sample data of `npm run dev`. */
async function startSample() {
  const DATABASE_URL = await cloneDatabase('template0')
  const service = await startService({ DATABASE_URL, ...ADMIN })
  await insertMuestra(DATABASE_URL)
  return { service, DATABASE_URL }
}

/** Runs texts one after the other in one interpreter process; returns the output of each. */
async function run(language: Language, texts: string[], address: string, cwd?: string) {
  const { program, args, begin, separate } = INTERPRETERS[language]
  const script = begin + texts.join(`\n${separate}\n`)
  const { stdout } = await promisify(execFile)(
    program,
    [...args, script.replaceAll(DOCUMENTED_ADDRESS, address)],
    { cwd, env: { PATH: process.env.PATH }, timeout: 60_000 },
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
  const { service } = await startSample()
  for (const language of ['sh', 'js'] as const) {
    const runnable = document.fences.filter((fence) => {
      return fence.role === 'run' && fence.language === language
    })
    if (runnable.length === 0) continue
    const texts = runnable.map(({ text }) => text)
    const outputs = await run(language, texts, service.address)
    const expected = runnable.map((fence, index) => outputBelow(document, fence) ?? outputs[index])
    expect(outputs).toEqual(expected)
  }
})

/** How docs/operating.md reads the log of the replicas. */
const READ_LOG = 'docker compose logs --no-log-prefix app1 app2'

/**
 * Sends the requests that the questions of docs/operating.md are about. Returns the ids of carlos
 * and bruna, who are deleted in the end, and that of the profile Nuevo.
 */
async function sendAuditedRequests({ call }: Service) {
  async function login(strNombreUsuario: string, strPwd: string) {
    const body = { strNombreUsuario, strPwd, captchaToken: 'x' }
    const answer = await call('POST', '/api/auth/login', body)
    return answer.body.token as string
  }
  async function request(token: string, method: string, path: string, body?: object) {
    const answer = await call(method, `/api/${path}`, body, token)
    expect(answer).toMatchObject({ status: 200, body: { success: true } })
    return answer.body.data
  }
  const admin = await login(ADMIN.ADMIN_USERNAME, ADMIN.ADMIN_PASSWORD)
  const { id: idBruna } = await request(admin, 'POST', 'usuario', usuario('bruna'))
  const bruna = await login('bruna', 'una clave')
  const viejo = await request(admin, 'POST', 'perfil', { strNombrePerfil: 'Viejo' })
  const nuevo = await request(admin, 'POST', 'perfil', { strNombrePerfil: 'Nuevo' })
  const [{ id: idModulo }] = await request(admin, 'GET', 'modulo?search=USUARIO')
  const carlos = await request(admin, 'POST', 'usuario', usuario('carlos', { idPerfil: viejo.id }))

  const permiso = { idPerfil: nuevo.id, idModulo, bitEliminar: true }
  await request(bruna, 'POST', 'permisos', permiso)
  await request(admin, 'PUT', `usuario/${carlos.id}`, usuario('carlos', { idPerfil: nuevo.id }))

  await login('carlos', 'otra clave')
  const session = await login('carlos', 'una clave')
  const refused = await call('DELETE', '/api/modulo/1', undefined, session)
  expect(refused.status).toBe(403)
  await request(bruna, 'DELETE', `usuario/${carlos.id}`)
  await request(admin, 'DELETE', `usuario/${idBruna}`)
  return { carlos: carlos.id as number, bruna: idBruna as number, nuevo: nuevo.id as number }
}

const operating = allDocuments.find(({ name }) => name === 'docs/operating.md')
const textsWith = (language: string, part: RegExp) =>
  (operating?.fences ?? [])
    .filter((fence) => fence.language === language && part.test(fence.text))
    .map(({ text }) => text)

it('the statements of docs/operating.md find the answers to its questions in the audit', async () => {
  const { service, DATABASE_URL } = await startSample()
  const { carlos, bruna, nuevo } = await sendAuditedRequests(service)
  const sql = connectTo(DATABASE_URL)
  const [days] = await sql`
    select current_date::text as today, (current_date + 1)::text as tomorrow
  `
  const statements = textsWith('sql', /from (auditoria|origen_de_permiso)/).map((text) =>
    text
      .replace('(12,', `(${carlos},`)
      .replace('= 7', `= ${bruna}`)
      .replace('= 9', `= ${nuevo}`)
      .replace('2026-11-01', days?.today)
      .replace('2026-11-22', days?.today)
      .replace('2026-11-23', days?.tomorrow),
  )
  const answers: postgres.RowList<postgres.Row[]>[] = []
  for (const statement of statements) answers.push(await sql.unsafe(statement))
  const [strangers, saves, ids, grants, moves, deletions, writes] = answers

  expect(strangers).toEqual([])
  // If nobody had logged in from that address, the statement would find all three.
  const [strangersStatement = ''] = statements
  const withoutLogins = strangersStatement.replace('ip = escrita.ip', "ip = '192.0.2.1'")
  expect(await sql.unsafe(withoutLogins)).toMatchObject([
    { strNombreUsuario: 'admin', ip: '127.0.0.1' },
    { strNombreUsuario: 'bruna', ip: '127.0.0.1' },
    { strNombreUsuario: 'carlos', ip: '127.0.0.1' },
  ])
  expect(saves).toMatchObject([{ strNombreUsuario: 'bruna', ip: '127.0.0.1', antes: null }])
  expect(ids).toEqual([{ idEntidad: carlos }])
  expect(grants).toMatchObject([
    { strNombreUsuario: 'bruna', ip: '127.0.0.1', accion: 'insert', entidad: 'permisos' },
    { strNombreUsuario: 'admin', accion: 'update', entidad: 'usuario', nombre: 'carlos' },
  ])
  expect(moves).toMatchObject([
    { strNombreUsuario: 'admin', nombre: 'carlos', antes: 'Viejo', despues: 'Nuevo' },
  ])
  expect(deletions).toMatchObject([
    { strNombreUsuario: 'admin', idEntidad: bruna, nombre: 'bruna' },
    { strNombreUsuario: 'bruna', ip: '127.0.0.1', idEntidad: carlos, nombre: 'carlos' },
  ])
  expect(writes).toMatchObject([
    { ip: '127.0.0.1', accion: 'login', entidad: 'usuario', nombre: 'bruna' },
    { accion: 'insert', entidad: 'permisos', nombre: 'Nuevo' },
    { accion: 'delete', entidad: 'usuario', idEntidad: carlos, nombre: 'carlos' },
  ])
})

it.skipIf(!hasJq)(
  `the commands of docs/operating.md find the refused requests in the log${skipNote}`,
  async () => {
    const { service } = await startSample()
    const { carlos } = await sendAuditedRequests(service)
    const isLast = ({ method, path }: Record<string, unknown>) =>
      method === 'DELETE' && path === `/api/usuario/${carlos}`
    await expect.poll(() => service.lines().some(isLast)).toBe(true)
    const commands = textsWith('sh', /audit\.jsonl/).map((text) =>
      text.replace(READ_LOG, 'cat service.log').replace('== 12', `== ${carlos}`),
    )

    const cwd = await mkdtemp(join(tmpdir(), 'llavero-audit-'))
    onTestFinished(() => rm(cwd, { recursive: true }))
    // Half of the lines are in the folder `audit/`, as those of containers that were removed. One
    // of these lines is also in the log.
    const lines = service.readLog().split('\n')
    const half = Math.floor(lines.length / 2)
    await mkdir(join(cwd, 'audit'))
    await writeFile(join(cwd, 'audit', 'app1.jsonl'), `${lines.slice(0, half + 1).join('\n')}\n`)
    await writeFile(join(cwd, 'service.log'), lines.slice(half).join('\n'))

    const answers = await run('sh', commands, service.address, cwd)
    // Each line begins with the time.
    const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\t/gm
    const [, logins, refusals] = answers.map((answer) => answer.replace(time, ''))
    expect(logins).toBe('carlos\t127.0.0.1\tpassword')
    const needs = '{"modulo":"MODULO","accion":"bitEliminar"}'
    expect(refusals).toBe(`carlos\t127.0.0.1\tDELETE\t/api/modulo/1\t1\t${needs}`)
  },
)
