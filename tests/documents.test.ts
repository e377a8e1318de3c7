import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { loadConfig } from '../src/config.js'
import { ENDPOINT_NAMES, type EndpointName, endpoint } from './endpoints.js'
import { cells, type Document, readDocuments } from './markdown.js'
import { SECRETS } from './service.js'

/** The most characters that a cell of a table may have, so that the table fits on a page. */
const MAX_CELL = 160

/** Names of programs. Text in backticks that begins with one of them counts as a command. */
const PROGRAMS =
  'bash caddy cat cd cp createdb curl docker dropdb git grep haproxy jq kubectl nginx node npm npx ' +
  'openssl pg_dump pg_restore promtool psql rm sed sh sudo systemctl'

const documents = await readDocuments()

function find(name: string): Document {
  const document = documents.find((each) => each.name === name)
  if (!document) throw new Error(`there is no ${name}`)
  return document
}

/** Returns the first cell, without backticks, of each table row whose first cell is all code. */
const rowsOf = ({ lines }: Document) =>
  lines.flatMap((line) => /^`([^`]+)`$/.exec(cells(line)[0] ?? '')?.[1] ?? [])

/** Returns the anchors that GitHub and GitLab give to a document's headings. */
function anchorsOf({ lines }: Document) {
  const anchors: string[] = []
  for (const line of lines) {
    const [, heading] = /^#+ (.+)$/.exec(line) ?? []
    if (heading === undefined) continue
    const words = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '')
    const anchor = words.trim().replaceAll(' ', '-')
    const equal = anchors.filter((other) => other.replace(/-\d+$/, '') === anchor).length
    anchors.push(equal === 0 ? anchor : `${anchor}-${equal}`)
  }
  return anchors
}

/** Returns the targets of a document's links to files and headings of this repository. */
const linksOf = ({ lines }: Document) =>
  [...lines.join('\n').matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))

/** Splits a link's target into a path from the root of the repository and an anchor. */
function resolveLink(from: string, link: string) {
  const { pathname, hash } = new URL(link, `file:///${from}`)
  return { path: decodeURIComponent(pathname.slice(1)), anchor: decodeURIComponent(hash.slice(1)) }
}

function isReachable(from: string, link: string) {
  const { path, anchor } = resolveLink(from, link)
  if (!existsSync(new URL(`../${path}`, import.meta.url))) return false
  const target = documents.find(({ name }) => name === path)
  return anchor === '' || (target !== undefined && anchorsOf(target).includes(anchor))
}

it('every link within the repository leads to an existing file and heading', () => {
  const broken = documents.flatMap((document) =>
    linksOf(document)
      .filter((link) => !isReachable(document.name, link))
      .map((link) => `${document.name}: ${link}`),
  )
  expect(broken).toEqual([])
})

it('README links to every other document', () => {
  const readme = find('README.md')
  const linked = linksOf(readme).map((link) => resolveLink(readme.name, link).path)
  const others = documents.map(({ name }) => name).filter((name) => name !== 'README.md')
  expect(others.filter((name) => !linked.includes(name))).toEqual([])
})

/** Returns what an endpoint needs, in the words of README. */
function needsOf(name: EndpointName) {
  const { needs, isOpenToOwner } = endpoint(name)
  if (needs === 'session') return 'a session'
  if (needs === 'administrador') return 'an administrator profile'
  const permission = needs.replace(/ (.+)/, ' `$1`')
  if (!isOpenToOwner) return permission
  return `${permission}; one's own ${name.includes('/usuario/') ? 'user' : 'profile'} needs only a session`
}

it('README has one row for each endpoint of the API, with what it needs', () => {
  const rows = find('README.md')
    .lines.map(cells)
    .filter(([name]) => name?.includes(' /api/'))
  const found = rows.map(([name, , needs]) => `${name} ${needs}`)
  const expected = ENDPOINT_NAMES.map((name) => `\`${name}\` ${needsOf(name)}`)
  expect(found.toSorted()).toEqual(expected.toSorted())
})

it('no cell of a table has more than 160 characters', () => {
  const long = documents.flatMap(({ name, lines }) =>
    lines
      .flatMap(cells)
      .filter((cell) => cell.length > MAX_CELL)
      .map((cell) => `${name}: ${cell}`),
  )
  expect(long).toEqual([])
})

it('no cell of a table has a command, because a reader could not copy it as a block', () => {
  const programs = PROGRAMS.replaceAll(' ', '|')
  // Variables may stand before the program: `PORT=4000 npm run dev`.
  const command = new RegExp(`\`(\\$ )?([A-Z_]+=\\S* )*(${programs}|deploy/\\S+) [^\`]+\``)
  const found = documents.flatMap(({ name, lines }) =>
    lines
      .flatMap(cells)
      .filter((cell) => command.test(cell))
      .map((cell) => `${name}: ${cell}`),
  )
  expect(found).toEqual([])
})

it('every fence names its language, and an output fence follows a `run` fence', () => {
  for (const { name, fences } of documents) {
    for (const [index, { language, role }] of fences.entries()) {
      expect({ name, language }).toEqual({ name, language: expect.stringMatching(/^[a-z]+$/) })
      expect({ name, role }).toEqual({ name, role: expect.toBeOneOf(['', 'run', 'output']) })
      if (role === 'run') expect(['sh', 'js']).toContain(language)
      if (role === 'output') expect(fences[index - 1]).toMatchObject({ role: 'run' })
    }
  }
})

it('docs/operating.md lists every message that is a literal in a call of the log', async () => {
  const messages = new Set<string>()
  for (const path of await readdir('src', { recursive: true })) {
    if (!path.endsWith('.ts') || path.startsWith('dev/')) continue
    const text = await readFile(`src/${path}`, 'utf8')
    const calls = text.matchAll(/\blog\.(?:info|warn|error|audit)\([^']*'([^']+)'\)/g)
    for (const [, message = ''] of calls) messages.add(message)
  }
  expect(messages.size).toBeGreaterThan(10)

  const firstCells = find('docs/operating.md').lines.flatMap((line) => cells(line)[0] ?? [])
  const listed = firstCells.flatMap((cell) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text),
  )
  expect([...messages].filter((message) => !listed.includes(message))).toEqual([])
})

it('docs/changelog.md begins with the version of package.json', async () => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'))
  const headings = find('docs/changelog.md').lines.filter((line) => line.startsWith('## '))
  expect(headings[0]).toBe(`## ${version}`)
})

it('docs/configuration.md has one row for each environment variable of the service', () => {
  const DATABASE_URL = 'postgres://user@host/database'
  const variables = Object.keys(loadConfig({ ...SECRETS, DATABASE_URL }))
  const rows = rowsOf(find('docs/configuration.md')).filter((row) => /^[A-Z_]+$/.test(row))
  expect(rows.toSorted()).toEqual(variables.toSorted())
})
