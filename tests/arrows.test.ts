import { readdir, readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import ts from 'typescript'
import { beforeAll, describe, expect, it } from 'vitest'

/**
 * The folders and files of src/, from the top level to the bottom one. A level may import from the
 * levels below it.
 */
const LEVELS = [
  ['dev'],
  ['server'],
  ['app'],
  ['auth', 'usuario', 'perfil', 'modulo', 'permisos', 'auditoria'],
  ['access'],
  ['http', 'database'],
  ['config'],
]
/** The lowest level: every file directly in src/ that LEVELS does not name, like texts.ts. */
const BASE = LEVELS.length

/** The imports that are allowed although they do not go to a lower level. */
const EXCEPTIONS = [
  // A task of a user gets the Failure `busy` if too many of that user's wait already.
  'database/fair-share.ts -> http/answers/failures.ts',
  // A statement that has waited too long for a connection gets it, too.
  'database/pool.ts -> http/answers/failures.ts',
  // A statement that was refused with a Failure was not sent.
  'database/sql.ts -> http/answers/failures.ts',
]

/** Words that belong to a feature. The files of src/http/ and src/database/ must not have them. */
const FEATURE_WORDS =
  /usuario|perfil|m[oó]dulo|permisos|matri[zx]|imagen|contraseña|password|captcha/i

/** The files that each file of src/ imports, for types as well. Paths are relative to src/. */
const imports = new Map<string, string[]>()
/** The text of each file of src/. */
const texts = new Map<string, string>()

beforeAll(async () => {
  const entries = await readdir('src', { recursive: true })
  const files = entries.filter((entry) => entry.endsWith('.ts'))
  for (const file of files) {
    const text = await readFile(`src/${file}`, 'utf8')
    const { importedFiles } = ts.preProcessFile(text)
    const own = importedFiles.filter(({ fileName }) => fileName.startsWith('.'))
    texts.set(file, text)
    imports.set(
      file,
      own.map(({ fileName }) => resolve(file, fileName)),
    )
  }
})

/** Returns the path of the file that `file` imports as `name`. */
function resolve(file: string, name: string) {
  return posix.join(posix.dirname(file), name).replace(/\.js$/, '.ts')
}

/** Returns a file's folder in src/; for a file directly in src/, its name without `.ts`. */
const placeOf = (file: string) => file.split('/')[0]?.replace(/\.ts$/, '') ?? ''

function levelOf(file: string) {
  const level = LEVELS.findIndex((places) => places.includes(placeOf(file)))
  return level < 0 ? BASE : level
}

const isDownward = (from: string, to: string) =>
  placeOf(from) === placeOf(to) || levelOf(from) < levelOf(to)

/**
 * Returns the first import cycle that is reachable from `file`, or undefined when there is none.
 */
function findCycle(file: string, path: string[] = []): string[] | undefined {
  const start = path.indexOf(file)
  if (start >= 0) return [...path.slice(start), file]
  for (const next of imports.get(file) ?? []) {
    const cycle = findCycle(next, [...path, file])
    if (cycle) return cycle
  }
  return undefined
}

describe('the imports of src/', () => {
  it('go from a higher level to a lower one', () => {
    const arrows = [...imports].flatMap(([from, files]) => files.map((to) => ({ from, to })))
    const upward = arrows.filter(({ from, to }) => !isDownward(from, to))
    expect(arrows.length).toBeGreaterThan(100)
    expect(upward.map(({ from, to }) => `${from} -> ${to}`).toSorted()).toEqual(EXCEPTIONS)
  })

  it('have no cycle', () => {
    const cycles = [...imports.keys()].map((file) => findCycle(file)).filter(Boolean)
    expect(cycles).toEqual([])
  })
})

it('no file of src/http/ and src/database/ has a word that belongs to a feature', () => {
  const lines = [...texts]
    .filter(([file]) => ['http', 'database'].includes(placeOf(file)))
    .flatMap(([file, text]) => text.split('\n').map((line) => `${file}: ${line}`))
  expect(lines.filter((line) => FEATURE_WORDS.test(line))).toEqual([])
})
