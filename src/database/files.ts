import { readdir, readFile } from 'node:fs/promises'

const ROOT = new URL('../../', import.meta.url)

/** The name of a file, without its folder, and its content. */
export interface SqlFile {
  name: string
  text: string
}

/** Returns the .sql files of the folder sql/`folder`, in the order of their names. */
export async function readSqlFolder(folder: string): Promise<SqlFile[]> {
  const url = new URL(`sql/${folder}/`, ROOT)
  const entries = await readdir(url)
  const names = entries.filter((name) => name.endsWith('.sql')).sort()
  const files = names.map(async (name) => {
    const text = await readFile(new URL(name, url), 'utf8')
    return { name, text }
  })
  return Promise.all(files)
}
