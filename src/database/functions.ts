import { createHash } from 'node:crypto'
import type { TransactionSql } from 'postgres'
import { VERSION } from '../version.js'
import { readSqlFolder } from './files.js'

/** A file that creates one function. */
interface FunctionFile {
  text: string
  /** The function's name and arguments, as `comment on function` takes them. */
  signature: string
  mark: Mark
}

/** Says from which file a function was made, by which release. It is the function's comment. */
interface Mark {
  version: string
  file: string
  checksum: string
}

/** Reads sql/functions and sql/transactions. Throws when a file creates no function. */
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
 * Applies the functions that are missing in the database and those that were made from another text.
 * A function that a newer release has made stays as it is.
 */
export async function applyFunctions(tx: TransactionSql, files: FunctionFile[]): Promise<void> {
  const marks = await readMarks(tx)
  // A `language sql` function may be created before one that it calls.
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

/** Above 0 when version `a` is the higher one: 0.10.0 is higher than 0.9.0. */
const compareVersions = (a: string, b: string) => a.localeCompare(b, 'en', { numeric: true })
