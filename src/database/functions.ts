import { createHash } from 'node:crypto'
import type { TransactionSql } from 'postgres'
import { VERSION } from '../version.js'
import { readSqlFolder } from './files.js'

/** A file that creates one function of the database. */
interface FunctionFile {
  text: string
  /** The function's name and arguments, in the form that `comment on function` expects. */
  signature: string
  mark: Mark
}

/** From which file and by which release a function was created. It is stored as its comment. */
interface Mark {
  version: string
  file: string
  checksum: string
}

/** Reads the files of sql/functions and sql/transactions. Throws if a file creates no function. */
export async function readFunctions(): Promise<FunctionFile[]> {
  const files = [...(await readSqlFolder('functions')), ...(await readSqlFolder('transactions'))]
  return files.map(({ name, text }) => {
    const signature = /^create or replace function (\w+\([^)]*\))/m.exec(text)?.[1]
    if (!signature) throw new Error(`${name} creates no function`)
    const checksum = createHash('sha256').update(text).digest('hex')
    return { text, signature, mark: { version: VERSION, file: name, checksum } }
  })
}

/**
 * Creates the functions that are missing in the database and replaces those that were created from
 * another text. A function that a newer release has created is left unchanged.
 */
export async function applyFunctions(tx: TransactionSql, files: FunctionFile[]): Promise<void> {
  const marks = await readMarks(tx)
  // A `language sql` function may be created before a function that it calls.
  await tx`set local check_function_bodies = off`

  for (const { text, signature, mark } of files) {
    const present = marks.filter(({ file }) => file === mark.file)
    const isSame = present.some(({ checksum }) => checksum === mark.checksum)
    const isNewer = present.some(({ version }) => compareVersions(version, mark.version) > 0)
    if (isSame || isNewer) continue
    await tx.unsafe(text)
    await tx.unsafe(`comment on function ${signature} is '${formatMark(mark)}'`)
  }
}

async function readMarks(tx: TransactionSql): Promise<Mark[]> {
  const rows = await tx<{ comment: string }[]>`
    select description as comment
    from pg_description
    where classoid = 'pg_proc'::regclass
      and description like 'llavero %'
      and pg_function_is_visible(objoid)
  `
  return rows.map(({ comment }) => {
    const [, version = '', file = '', checksum = ''] = comment.split(' ')
    return { version, file, checksum }
  })
}

const formatMark = ({ version, file, checksum }: Mark) => `llavero ${version} ${file} ${checksum}`

/** Returns a number above 0 if version `a` is higher than `b`. 0.10.0 is higher than 0.9.0. */
const compareVersions = (a: string, b: string) => a.localeCompare(b, 'en', { numeric: true })
