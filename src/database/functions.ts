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

/** Where a function comes from. The database stores this as the comment of the function. */
interface Mark {
  /** The version of the release that has created the function. */
  version: string
  /** The name of the file, without its folder. */
  file: string
  /** The SHA-256 of the file's text, in hexadecimal. */
  checksum: string
}

/**
 * Matches the beginning of the one statement in each file, and captures the function's signature.
 */
const CREATE_FUNCTION = /^create or replace function (\w+\([^)]*\))/m

/** Returns the files of sql/functions and sql/transactions. Throws if a file creates no function. */
export async function readFunctions(): Promise<FunctionFile[]> {
  const functions = await readSqlFolder('functions')
  const transactions = await readSqlFolder('transactions')

  return [...functions, ...transactions].map(({ name, text }) => {
    const signature = CREATE_FUNCTION.exec(text)?.[1]
    if (!signature) throw new Error(`${name} creates no function`)
    const checksum = createHash('sha256').update(text).digest('hex')
    const mark = { version: VERSION, file: name, checksum }
    return { text, signature, mark }
  })
}

/**
 * Creates the functions of the files that are missing in the database, and replaces those that were
 * created from another text. A function that a newer release has created stays as it is.
 */
export async function applyFunctions(tx: TransactionSql, files: FunctionFile[]): Promise<void> {
  const marks = await readMarks(tx)
  // The files are applied in the order of their names, so a `language sql` function may be created
  // before a function that it calls. Without this setting PostgreSQL would refuse to create it.
  await tx`set local check_function_bodies = off`

  for (const { text, signature, mark } of files) {
    const stored = marks.filter(({ file }) => file === mark.file)
    const isSame = stored.some(({ checksum }) => checksum === mark.checksum)
    if (isSame) continue
    // The versions are compared only now, because that loads collation rules, which takes 12 ms.
    const isNewer = stored.some(({ version }) => compareVersions(version, mark.version) > 0)
    if (isNewer) continue

    await tx.unsafe(text)
    await tx.unsafe(`comment on function ${signature} is '${formatMark(mark)}'`)
  }
}

/** Returns the marks of all functions that a release of this service has created. */
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

/** Returns a number above 0 if version `a` is higher than `b`, as 0.10.0 is higher than 0.9.0. */
const compareVersions = (a: string, b: string) => a.localeCompare(b, 'en', { numeric: true })
