import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { insertMuestra } from '../../src/dev/muestra.js'
import { cloneDatabase } from '../app.js'
import { type Document, type Fence, readDocuments } from '../markdown.js'
import { startService } from './service.js'

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

const documents = (await readDocuments()).filter(({ fences }) =>
  fences.some(({ role }) => role === 'run'),
)

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
