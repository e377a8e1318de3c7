import { readdir, readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import ts from 'typescript'
import { beforeAll, describe, expect, it } from 'vitest'

/** The folders of src/ and the files in it, from the top to the bottom. */
const LEVELS = [
  ['dev'],
  ['server'],
  ['app'],
  ['usuario', 'perfil', 'modulo', 'permisos', 'examples'],
  ['auth'],
  ['http', 'database'],
]
/** The level of every other file that is directly in src/, like config.ts. */
const BASE = LEVELS.length

/** Imports against the levels that are wanted. */
const EXCEPTIONS = [
  // The constraints of fields are those of variables as well. Their file imports nothing.
  'config.ts -> http/constraints.ts',
  // A broken constraint of the database becomes a Failure.
  'database/sql.ts -> http/failures.ts',
]

/** The words of the features, which the code below them does not know. */
const FEATURE_WORDS =
  /usuario|perfil|m[oó]dulo|permisos|matri[zx]|imagen|contraseña|password|captcha/i

/** For each file of src/, the files that it imports, types included. Paths are relative to src/. */
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

/** The file that `file` imports as `name`. */
function resolve(file: string, name: string) {
  return posix.join(posix.dirname(file), name).replace(/\.js$/, '.ts')
}

/** The folder of a file under src/, or the name of a file that is directly in src/. */
const placeOf = (file: string) => file.split('/')[0]?.replace(/\.ts$/, '') ?? ''

function levelOf(file: string) {
  const level = LEVELS.findIndex((places) => places.includes(placeOf(file)))
  return level < 0 ? BASE : level
}

const isDownward = (from: string, to: string) =>
  placeOf(from) === placeOf(to) || levelOf(from) < levelOf(to)

/** Returns the first circle of imports that can be reached from `file`; undefined without one. */
function findCircle(file: string, path: string[] = []): string[] | undefined {
  const start = path.indexOf(file)
  if (start >= 0) return [...path.slice(start), file]
  for (const next of imports.get(file) ?? []) {
    const circle = findCircle(next, [...path, file])
    if (circle) return circle
  }
  return undefined
}

describe('the imports of src/', () => {
  it('go from an upper level to a lower one', () => {
    const arrows = [...imports].flatMap(([from, files]) => files.map((to) => ({ from, to })))
    const upward = arrows.filter(({ from, to }) => !isDownward(from, to))
    expect(arrows.length).toBeGreaterThan(100)
    expect(upward.map(({ from, to }) => `${from} -> ${to}`).toSorted()).toEqual(EXCEPTIONS)
  })

  it('make no circle', () => {
    const circles = [...imports.keys()].map((file) => findCircle(file)).filter(Boolean)
    expect(circles).toEqual([])
  })
})

it('the files of src/http/ and src/database/ name no feature', () => {
  const lines = [...texts]
    .filter(([file]) => ['http', 'database'].includes(placeOf(file)))
    .flatMap(([file, text]) => text.split('\n').map((line) => `${file}: ${line}`))
  expect(lines.filter((line) => FEATURE_WORDS.test(line))).toEqual([])
})
