import { readdir, readFile } from 'node:fs/promises'

const ROOT = new URL('../../', import.meta.url)

/** Returns the .sql files of the folder sql/`folder`, in the order of their names. */
export async function readSqlFolder(folder: string): Promise<{ name: string; text: string }[]> {
  const url = new URL(`sql/${folder}/`, ROOT)
  const names = (await readdir(url)).filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name) => ({ name, text: await readFile(new URL(name, url), 'utf8') })),
  )
}
