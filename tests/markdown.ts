import { readdir, readFile } from 'node:fs/promises'

const ROOT = new URL('../', import.meta.url)

/** A block of text between two lines of three backticks. */
export interface Fence {
  /** The word after the opening backticks: `sh`, `json`, `mermaid`. */
  language: string
  /** The second word: `run` if the tests run the text, `output` for its output, else ''. */
  role: string
  text: string
}

export interface Document {
  /** The path from the root of the repository. */
  name: string
  fences: Fence[]
  /** All lines outside the fences. */
  lines: string[]
}

/** Reads README.md, docs/ and the other documents of the repository. */
export async function readDocuments(): Promise<Document[]> {
  const docs = await readdir(new URL('docs/', ROOT))
  const names = ['README.md', 'sql/README.md', ...docs.map((name) => `docs/${name}`)]
  return Promise.all(names.filter((name) => name.endsWith('.md')).map(readDocument))
}

async function readDocument(name: string): Promise<Document> {
  const text = await readFile(new URL(name, ROOT), 'utf8')
  const fences: Fence[] = []
  const lines: string[] = []
  let open: Fence | undefined
  for (const line of text.split('\n')) {
    const [, info] = /^```(.*)$/.exec(line) ?? []
    const isFence = info !== undefined
    if (open) {
      if (isFence) open = undefined
      else open.text += `${line}\n`
    } else if (isFence) {
      const [language = '', role = ''] = info.split(' ')
      open = { language, role, text: '' }
      fences.push(open)
    } else {
      lines.push(line)
    }
  }
  if (open) throw new Error(`${name}: a fence is not closed`)
  return { name, fences, lines }
}

/** Returns the cells of a table row as Markdown; none when the line is not a table row. */
export const cells = (line: string) =>
  line.startsWith('|')
    ? line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim())
    : []
